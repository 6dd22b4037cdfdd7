#include "serve/answer_engine.h"

#include <algorithm>
#include <string>

#include "core/device/transfer.h"
#include "core/dtype.h"
#include "core/error.h"
#include "kernels/flat/cast.h"
#include "model/config/param_table.h"

namespace zerofleet {
namespace {

constexpr std::int64_t kMaxRows = 128;  // tokens of a pass; the prefill of a longer prompt takes several passes

std::int64_t pages_for(std::int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

Decoder::Limits decoder_limits(const ModelConfig& config, const AnswerEngine::Limits& limits) {
  require(limits.max_sequences >= 1 && limits.max_sequences <= kMaxRows && limits.cache_tokens >= 1, "invalid_argument",
          "an engine takes 1 to " + std::to_string(kMaxRows) + " sequences at once, and needs room for a token");
  const std::int64_t length = std::min({config.max_position_embeddings, limits.cache_tokens, limits.max_length});
  return {kMaxRows, limits.max_sequences, length, pages_for(limits.cache_tokens)};
}

}  // namespace

AnswerEngine::AnswerEngine(const ModelConfig& config, DType dtype, Device device, int num_threads, CpuIsa cpu_isa,
                           const Limits& limits)
    : specs_(param_specs(config)),
      pool_(num_threads),
      stream_(device),
      context_{device, &pool_, cpu_isa, &stream_},
      dtype_(dtype),
      config_(config),
      num_set_(specs_.size(), 0),
      decoder_(context_, config, dtype, decoder_limits(config, limits)),
      cache_(decoder_.limits().num_pages) {
  std::vector<const std::byte*> pointers;
  for (const ParamSpec& spec : specs_) {
    params_.emplace_back(device, static_cast<std::size_t>(spec.numel()) * size_of(dtype));
    pointers.push_back(params_.back().data());
    ++unset_[spec.layer];
  }
  decoder_.bind_params(pointers);
}

void AnswerEngine::set_param(std::size_t param, std::int64_t begin, DType dtype, std::span<const std::byte> elements) {
  const auto count = static_cast<std::int64_t>(elements.size() / size_of(dtype));
  require(param < specs_.size() && begin == num_set_[param] && count <= specs_[param].numel() - begin &&
              elements.size() % size_of(dtype) == 0,
          "invalid_argument",
          "parameter " + std::to_string(param) + " does not take " + std::to_string(count) +
              " elements next, from element " + std::to_string(begin));
  if (count == 0) return;
  const std::span<std::byte> target{params_[param].data() + static_cast<std::size_t>(begin) * size_of(dtype_),
                                    static_cast<std::size_t>(count) * size_of(dtype_)};
  if (context_.device.kind == DeviceKind::kCpu) {
    convert(dtype, elements, target);
  } else {
    std::vector<std::byte> host(target.size());
    convert(dtype, elements, host);
    copy_bytes(context_, target, context_.device, host, Device{});
  }
  num_set_[param] += count;
  if (num_set_[param] < specs_[param].numel()) return;
  if (const int layer = specs_[param].layer; --unset_[layer] == 0) use_params(layer);
}

/// Called once per layer when all its parameters are set, so that only one layer is in memory twice.
void AnswerEngine::use_params(int layer) {
  unset_.erase(layer);
  decoder_.params_changed(layer);
  for (std::size_t param = 0; param < specs_.size(); ++param) {
    if (specs_[param].layer == layer && decoder_.is_copied(param)) params_[param] = Buffer();
  }
}

/// On the host.
void AnswerEngine::convert(DType dtype, std::span<const std::byte> elements, std::span<std::byte> target) const {
  if (dtype == dtype_) {
    std::ranges::copy(elements, target.begin());
    return;
  }
  const Context host{Device{}, context_.pool, context_.cpu_isa};
  std::vector<float> values(elements.size() / size_of(dtype));
  cast_to_f32(host, elements, dtype, values);
  cast_from_f32(host, values, dtype_, target);
}

std::int32_t AnswerEngine::add_adapter(const AdapterConfig& adapter, std::span<const std::vector<float>> values) {
  const std::vector<ParamSpec> specs = ServedAdapter::params(config_, adapter);
  const auto num_elements = [](const auto& param) { return std::ssize(param); };
  require(std::ranges::equal(specs, values, {}, &ParamSpec::numel, num_elements), "invalid_argument",
          "the values of an adapter do not fit its " + std::to_string(specs.size()) + " parameters");
  std::vector<std::vector<std::byte>> elements;
  for (const std::vector<float>& param : values) {
    elements.emplace_back(param.size() * size_of(dtype_));
    convert(DType::kF32, std::as_bytes(std::span(param)), elements.back());
  }
  auto served = decoder_.make_adapter(adapter, elements);
  const std::lock_guard lock(mutex_);
  adapters_.emplace(++last_adapter_, std::move(served));
  return last_adapter_;
}

void AnswerEngine::remove_adapter(std::int32_t adapter) {
  const auto uses_adapter = [&](const SequenceRequest& request) { return request.adapter == adapter; };
  for (Sequence& sequence : running_) {
    if (uses_adapter(sequence.request)) release(sequence);
  }
  std::erase_if(running_, [&](const Sequence& sequence) { return uses_adapter(sequence.request); });
  std::erase_if(waiting_, [&](const Sequence& sequence) { return uses_adapter(sequence.request); });
  const std::lock_guard lock(mutex_);
  std::erase_if(arrived_, uses_adapter);
  adapters_.erase(adapter);
}

std::size_t AnswerEngine::num_bytes() const {
  std::size_t bytes = decoder_.num_bytes();
  for (std::size_t param = 0; param < specs_.size(); ++param) {
    if (!decoder_.is_copied(param)) bytes += static_cast<std::size_t>(specs_[param].numel()) * size_of(dtype_);
  }
  return bytes;
}

void AnswerEngine::add(SequenceRequest request) {
  validate(request.draw);
  require(!request.prompt.empty() && request.max_tokens >= 1 && request.top_log_probs >= 0, "invalid_argument",
          "a sequence needs a prompt of at least one token, and max_tokens of at least 1");
  const std::int64_t vocab = decoder_.vocab_size();
  const auto is_known = [&](std::int32_t token) { return token >= 0 && token < vocab; };
  require(std::ranges::all_of(request.prompt, is_known), "token_out_of_vocab",
          "a token of the prompt is outside the vocabulary");
  const auto is_known_bias = [&](const LogitBias& each) { return each.token >= 0 && each.token < vocab; };
  require(std::ranges::all_of(request.draw.logit_bias, is_known_bias), "token_out_of_vocab",
          "logit_bias has a token outside the vocabulary of " + std::to_string(vocab));
  require(std::ssize(request.prompt) < max_length(), "prompt_too_long",
          "the prompt has " + std::to_string(request.prompt.size()) +
              " tokens; prompt and answer together may have at most " + std::to_string(max_length()));
  const std::lock_guard lock(mutex_);
  require(request.adapter == 0 || adapters_.contains(request.adapter), "invalid_argument",
          "there is no adapter " + std::to_string(request.adapter));
  arrived_.push_back(std::move(request));
}

void AnswerEngine::cancel(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(arrived_, [&](const SequenceRequest& request) { return request.id == id; });
  cancelled_.push_back(id);
}

void AnswerEngine::allow(std::uint64_t id, TokenMask mask) {
  require(std::ranges::any_of(mask, [](std::uint32_t word) { return word != 0; }), "invalid_argument",
          "a mask must allow a token");
  const std::lock_guard lock(mutex_);
  allowed_[id] = std::move(mask);
}

void AnswerEngine::receive_requests() {
  std::vector<SequenceRequest> arrived;
  std::vector<std::uint64_t> cancelled;
  std::map<std::uint64_t, TokenMask> allowed;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(arrived_);
    cancelled.swap(cancelled_);
    allowed.swap(allowed_);
  }
  const auto is_cancelled = [&](const Sequence& sequence) {
    return std::ranges::find(cancelled, sequence.request.id) != cancelled.end();
  };
  for (Sequence& sequence : running_) {
    if (is_cancelled(sequence)) release(sequence);
  }
  std::erase_if(running_, is_cancelled);
  std::erase_if(waiting_, is_cancelled);
  for (SequenceRequest& request : arrived) {
    Sequence sequence;
    sequence.tokens = request.prompt;
    sequence.request = std::move(request);
    waiting_.push_back(std::move(sequence));
  }
  const auto set_mask = [&](Sequence& sequence) {
    if (const auto found = allowed.find(sequence.request.id); found != allowed.end()) sequence.mask = found->second;
  };
  std::ranges::for_each(running_, set_mask);
  std::ranges::for_each(waiting_, set_mask);
}

/// Moves waiting sequences to running_ while the KV cache has room for their tokens.
void AnswerEngine::admit() {
  while (!waiting_.empty() && std::ssize(running_) < decoder_.limits().max_sequences) {
    Sequence& sequence = waiting_.front();
    sequence.page_table = cache_.take_prefix(cache_tree(sequence), sequence.tokens);
    const std::int64_t num_missing = pages_for(std::ssize(sequence.tokens)) - std::ssize(sequence.page_table);
    if (!running_.empty() && num_missing > cache_.num_available()) {
      release(sequence);
      return;
    }
    sequence.num_published = std::ssize(sequence.page_table);
    sequence.num_computed = sequence.num_published * kPageTokens;
    if (sequence.cached_tokens < 0) sequence.cached_tokens = sequence.num_computed;
    running_.push_back(std::move(sequence));
    waiting_.pop_front();
  }
}

void AnswerEngine::release(Sequence& sequence) {
  for (const std::int32_t page : sequence.page_table) cache_.release(page);
  sequence.page_table.clear();
  sequence.num_computed = sequence.num_published = sequence.num_scheduled = 0;
}

/// Keys and values depend on the adapter and on the rotary frequencies.
std::int32_t AnswerEngine::cache_tree(const Sequence& sequence) const {
  return 2 * sequence.request.adapter + (config_.rope_scaling.is_long(std::ssize(sequence.tokens)) ? 1 : 0);
}

void AnswerEngine::append(Sequence& sequence, std::int32_t token) {
  const std::int32_t tree = cache_tree(sequence);
  sequence.tokens.push_back(token);
  if (cache_tree(sequence) != tree) release(sequence);
}

void AnswerEngine::preempt(std::size_t index) {
  release(running_[index]);
  waiting_.push_front(std::move(running_[index]));
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
}

/// Allocates pages for the first `num_tokens` tokens, and preempts sequences that were admitted later where it must.
/// Returns false if that is not enough.
bool AnswerEngine::allocate_pages(std::size_t index, std::int64_t num_tokens) {
  while (std::ssize(running_[index].page_table) < pages_for(num_tokens)) {
    if (const auto page = cache_.allocate()) {
      running_[index].page_table.push_back(*page);
    } else if (index + 1 < running_.size()) {
      preempt(running_.size() - 1);
    } else {
      return false;
    }
  }
  return true;
}

void AnswerEngine::schedule_rows(std::size_t index, std::int64_t count) {
  if (allocate_pages(index, running_[index].num_computed + count)) {
    running_[index].num_scheduled = count;
  } else {
    preempt(index);
  }
}

/// Decode comes first, one row per sequence. The remaining rows go to prefill, in order of admission.
void AnswerEngine::schedule() {
  std::int64_t left = decoder_.limits().max_rows;
  for (Sequence& sequence : running_) sequence.num_scheduled = 0;
  for (std::size_t index = 0; index < running_.size(); ++index) {
    if (running_[index].num_uncomputed() == 1 && running_[index].num_ready() == 1) schedule_rows(index, 1);
  }
  for (const Sequence& sequence : running_) left -= sequence.num_scheduled;
  for (std::size_t index = 0; index < running_.size() && left > 0; ++index) {
    if (running_[index].num_scheduled > 0) continue;
    const std::int64_t count = std::min(left, running_[index].num_ready());
    if (count > 0) schedule_rows(index, count);
    left -= count;
  }
}

void AnswerEngine::publish(Sequence& sequence) {
  for (; sequence.num_published < sequence.num_computed / kPageTokens; ++sequence.num_published) {
    const auto index = static_cast<std::size_t>(sequence.num_published);
    const auto tokens = std::span<const std::int32_t>(sequence.tokens).subspan(index * kPageTokens, kPageTokens);
    std::vector<std::int32_t>& pages = sequence.page_table;
    const std::int32_t parent = index == 0 ? KvCacheManager::root_of(cache_tree(sequence)) : pages[index - 1];
    pages[index] = cache_.publish(parent, tokens, pages[index]);
  }
}

DrawnToken AnswerEngine::draw(const Sequence& sequence, const NextToken& next) const {
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
  } else if (sequence.num_drawn() + 1 == request.max_tokens || std::ssize(sequence.tokens) + 1 == max_length()) {
    result.finish = Finish::kLength;
  }
  return result;
}

/// Returns the sequences with rows in this step, ordered by adapter.
std::vector<AnswerEngine::Sequence*> AnswerEngine::scheduled_sequences() {
  std::vector<Sequence*> sequences;
  for (Sequence& sequence : running_) {
    if (sequence.num_scheduled > 0) sequences.push_back(&sequence);
  }
  std::ranges::stable_sort(sequences, {}, [](const Sequence* sequence) { return sequence->request.adapter; });
  return sequences;
}

std::vector<DrawnToken> AnswerEngine::step() {
  if (!unset_.empty()) {
    const auto unset = std::ranges::mismatch(num_set_, specs_, {}, {}, &ParamSpec::numel).in2;
    throw Error("invalid_argument", "parameter " + unset->name + " was not set");
  }
  receive_requests();
  admit();
  schedule();
  std::vector<SequenceRows> rows;
  std::vector<Sequence*> drawing;
  for (Sequence* sequence : scheduled_sequences()) {
    const auto first = static_cast<std::size_t>(sequence->num_computed);
    const auto tokens = std::span<const std::int32_t>(sequence->tokens)
                            .subspan(first, static_cast<std::size_t>(sequence->num_scheduled));
    const bool needs_logits = sequence->num_scheduled == sequence->num_uncomputed();
    const std::int32_t adapter = sequence->request.adapter;
    rows.push_back({tokens, sequence->num_computed, sequence->page_table, needs_logits,
                    adapter == 0 ? nullptr : adapters_.at(adapter).get(), std::ssize(sequence->tokens)});
    if (needs_logits) drawing.push_back(sequence);
  }
  if (rows.empty()) return {};
  const std::span<const NextToken> next = decoder_.append(rows);
  std::vector<DrawnToken> drawn(drawing.size());
  pool_.parallel_for(std::ssize(drawn), [&](std::int64_t index, int) {
    const auto i = static_cast<std::size_t>(index);
    drawn[i] = draw(*drawing[i], next[i]);
  });
  for (Sequence& sequence : running_) {
    sequence.num_computed += sequence.num_scheduled;
    publish(sequence);
  }
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    drawing[i]->mask.clear();
    if (drawn[i].finish != Finish::kNone)
      release(*drawing[i]);
    else
      append(*drawing[i], drawn[i].drawn.token);
  }
  const auto has_ended = [&](const Sequence& sequence) {
    return std::ranges::any_of(drawn, [&](const DrawnToken& token) {
      return token.id == sequence.request.id && token.finish != Finish::kNone;
    });
  };
  std::erase_if(running_, has_ended);
  return drawn;
}

}  // namespace zerofleet
