#include "serve/continuous_batch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "serve/token_draw.h"

namespace zerofleet {
namespace {

constexpr std::int64_t kMaxRows = 128;  // tokens of a pass; the prefill of a longer prompt takes several passes

}  // namespace

Decoder::Limits ContinuousBatch::decoder_limits(const ModelConfig& config, std::int64_t max_sequences,
                                                std::int64_t cache_tokens, std::int64_t max_length) {
  require(max_sequences >= 1 && max_sequences <= kMaxRows && cache_tokens >= 1, "invalid_argument",
          "an engine takes 1 to " + std::to_string(kMaxRows) + " sequences at once, and needs room for a token");
  const std::int64_t length = std::min({config.max_position_embeddings, cache_tokens, max_length});
  return {kMaxRows, max_sequences, length, (cache_tokens + kPageTokens - 1) / kPageTokens};
}

ContinuousBatch::ContinuousBatch(const Context& context, const RopeScaling& rope_scaling, Decoder& decoder)
    : context_(context),
      decoder_(decoder),
      scheduler_(rope_scaling,
                 {decoder.limits().max_rows, decoder.limits().max_sequences, decoder.limits().num_pages}) {}

void ContinuousBatch::check(const SequenceRequest& request, std::int64_t vocab_size, std::int64_t max_length) {
  validate(request.draw);
  require(!request.prompt.empty() && request.max_tokens >= 1 && request.top_log_probs >= 0, "invalid_argument",
          "a sequence needs a prompt of at least one token, and max_tokens of at least 1");
  const auto is_known = [&](std::int32_t token) { return token >= 0 && token < vocab_size; };
  require(std::ranges::all_of(request.prompt, is_known), "token_out_of_vocab",
          "a token of the prompt is outside the vocabulary");
  const auto is_known_bias = [&](const LogitBias& each) { return each.token >= 0 && each.token < vocab_size; };
  require(std::ranges::all_of(request.draw.logit_bias, is_known_bias), "token_out_of_vocab",
          "logit_bias has a token outside the vocabulary of " + std::to_string(vocab_size));
  require(std::ssize(request.prompt) < max_length, "prompt_too_long",
          "the prompt has " + std::to_string(request.prompt.size()) +
              " tokens; prompt and answer together may have at most " + std::to_string(max_length));
}

DrawnToken ContinuousBatch::draw(const Sequence& sequence, const NextToken& next) const {
  const SequenceRequest& request = sequence.request;
  DrawnToken result{request.id, {}, {}, Finish::kNone, sequence.cached_tokens};
  const auto position = static_cast<std::uint32_t>(sequence.num_drawn());
  std::vector<float> adjusted;
  if (adjusts_logits(request.draw) || request.is_constrained)
    adjusted = adjusted_logits(next.logits, request.draw, sequence.drawn(), sequence.mask);
  const std::span<const float> logits = adjusted.empty() ? next.logits : adjusted;
  const std::int32_t token = draw_token(context_.cpu_isa, logits, request.draw, position);
  result.drawn = {token, next.log_prob(token)};
  if (request.top_log_probs > 0) {
    const auto count = static_cast<std::size_t>(request.top_log_probs);
    for (const std::int32_t likely : most_likely(known_tokens(next.logits, request.draw), count)) {
      result.top.push_back({likely, next.log_prob(likely)});
    }
  }
  if (std::ranges::find(request.end_tokens, token) != request.end_tokens.end()) {
    result.finish = Finish::kEndToken;
  } else if (sequence.num_drawn() + 1 == request.max_tokens ||
             std::ssize(sequence.tokens) + 1 == decoder_.limits().max_length) {
    result.finish = Finish::kLength;
  }
  return result;
}

std::vector<DrawnToken> ContinuousBatch::step(const AdapterOf& adapter_of) {
  std::vector<SequenceRows> rows;
  std::vector<Sequence*> drawing;
  for (Sequence* sequence : scheduler_.schedule()) {
    const auto first = static_cast<std::size_t>(sequence->num_computed);
    const auto tokens = std::span<const std::int32_t>(sequence->tokens)
                            .subspan(first, static_cast<std::size_t>(sequence->num_scheduled));
    const bool needs_logits = sequence->num_scheduled == sequence->num_uncomputed();
    const std::int32_t adapter = sequence->request.adapter;
    rows.push_back({tokens, sequence->num_computed, sequence->page_table, needs_logits,
                    adapter == 0 ? nullptr : adapter_of(adapter), std::ssize(sequence->tokens)});
    if (needs_logits) drawing.push_back(sequence);
  }
  if (rows.empty()) return {};
  const std::span<const NextToken> next = decoder_.append(rows);
  std::vector<DrawnToken> drawn(drawing.size());
  context_.pool->parallel_for(std::ssize(drawn), [&](std::int64_t index, int) {
    const auto i = static_cast<std::size_t>(index);
    drawn[i] = draw(*drawing[i], next[i]);
  });
  scheduler_.finish_rows();
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (drawn[i].finish != Finish::kNone)
      scheduler_.end(*drawing[i]);
    else
      scheduler_.append(*drawing[i], drawn[i].drawn.token);
  }
  scheduler_.remove_ended();
  return drawn;
}

}  // namespace zerofleet
