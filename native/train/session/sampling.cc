#include "train/session/sampling.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "model/transformer/decoder.h"
#include "model/transformer/shared_operands.h"
#include "model/transformer/transformer.h"
#include "train/loss/leaf_table.h"
#include "zero/partition/leaf_schedule.h"

namespace zerofleet {
namespace {

// On CUDA devices the number of sequences is part of the shape of a product, so it is always the same. The memory
// estimate repeats both numbers (job-document/estimate/sampling-memory.ts).
constexpr std::int64_t kMaxSequences = 32;
constexpr std::int64_t kCacheTokens = 16384;  // of the KV cache, or one sequence if that is longer

/// A token of an answer. The first record of an answer has the number of its tokens, and how it ends.
struct AnswerRecord {
  std::int32_t token = 0;
  float log_prob = 0;
};

/// The model with the rotary frequencies of the training for sequences of any length.
ModelConfig with_one_rotation(const SampledModel& model) {
  ModelConfig config = model.config;
  RopeScaling& scaling = config.rope_scaling;
  const bool is_long = scaling.is_long(model.sequence_length);
  (is_long ? scaling.short_factor : scaling.long_factor) = is_long ? scaling.long_factor : scaling.short_factor;
  return config;
}

std::int64_t most_tokens(const SequenceRequest& request, std::int64_t max_length) {
  return std::min(request.max_tokens, max_length - std::ssize(request.prompt));
}

void write(const SampledAnswer& answer, std::span<AnswerRecord> records) {
  records[0] = {static_cast<std::int32_t>(answer.tokens.size()), answer.finish == Finish::kEndToken ? 1.0F : 0.0F};
  for (std::size_t i = 0; i < answer.tokens.size(); ++i) records[i + 1] = {answer.tokens[i], answer.log_probs[i]};
}

SampledAnswer read(std::span<const AnswerRecord> records) {
  SampledAnswer answer;
  answer.finish = records[0].log_prob == 1.0F ? Finish::kEndToken : Finish::kLength;
  for (const AnswerRecord& record : records.subspan(1, static_cast<std::size_t>(records[0].token))) {
    answer.tokens.push_back(record.token);
    answer.log_probs.push_back(record.log_prob);
  }
  return answer;
}

/// Answers of the requests with these numbers.
std::map<std::int64_t, SampledAnswer> draw(const SampledModel& model, std::span<const SequenceRequest> requests,
                                           std::span<const std::int64_t> numbers, std::int64_t longest,
                                           std::size_t& most_bytes) {
  std::map<std::int64_t, SampledAnswer> answers;
  if (numbers.empty()) return answers;
  const std::int64_t wanted = std::min(kMaxSequences, std::ssize(numbers)) * (longest + kPageTokens);
  const std::int64_t cache_tokens = std::max(longest, std::min(kCacheTokens, wanted));
  const ModelConfig config = with_one_rotation(model);
  const SharedOperands operands = model.transformer.operands();
  Decoder decoder(model.context, config, model.dtype,
                  ContinuousBatch::decoder_limits(config, kMaxSequences, cache_tokens, longest), &operands);
  decoder.bind_params(model.params, model.quantized);
  decoder.params_changed();
  ContinuousBatch batch(model.context, config.rope_scaling, decoder);
  for (const std::int64_t number : numbers) {
    SequenceRequest request = requests[static_cast<std::size_t>(number)];
    request.id = static_cast<std::uint64_t>(number);
    batch.sequences().add(std::move(request));
  }
  for (std::size_t num_ended = 0; num_ended < numbers.size();) {
    for (const DrawnToken& token : batch.step({})) {
      SampledAnswer& answer = answers[static_cast<std::int64_t>(token.id)];
      answer.tokens.push_back(token.drawn.token);
      answer.log_probs.push_back(token.drawn.log_prob);
      if (token.finish == Finish::kNone) continue;
      answer.finish = token.finish;
      ++num_ended;
    }
  }
  most_bytes = std::max(most_bytes, decoder.activation_bytes());
  return answers;
}

}  // namespace

std::vector<SampledAnswer> sample(const SampledModel& model, std::span<const SequenceRequest> requests,
                                  std::size_t& most_bytes) {
  std::vector<SampledAnswer> answers;
  if (requests.empty()) return answers;
  std::int64_t longest = 0, most = 0;
  for (const SequenceRequest& request : requests) {
    const std::int64_t max_length = model.config.max_position_embeddings;
    ContinuousBatch::check(request, model.config.vocab_size, max_length);
    most = std::max(most, most_tokens(request, max_length));
    longest = std::max(longest, std::ssize(request.prompt) + most_tokens(request, max_length));
  }
  const auto count = static_cast<std::int64_t>(requests.size());
  const auto of_ranks = LeafSchedule(count, count, model.world.world_size()).leaves_of_ranks();
  LeafTable<AnswerRecord> table(of_ranks, 1 + most);
  const std::vector<std::int64_t>& own = of_ranks[static_cast<std::size_t>(model.world.rank())];
  for (const auto& [number, answer] : draw(model, requests, own, longest, most_bytes))
    write(answer, table.leaf(number));
  table.exchange(model.world);
  for (std::int64_t number = 0; number < count; ++number) answers.push_back(read(table.leaf(number)));
  return answers;
}

}  // namespace zerofleet
