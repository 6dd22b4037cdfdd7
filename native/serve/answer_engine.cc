#include "serve/answer_engine.h"

#include <algorithm>
#include <string>

#include "core/device/transfer.h"
#include "core/dtype.h"
#include "core/error.h"
#include "model/config/param_specs.h"

namespace zerofleet {
namespace {

constexpr std::int64_t kMaxRows = 128;  // of a pass; a longer prompt takes several

std::int64_t pages_for(std::int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

Decoder::Limits decoder_limits(const ModelConfig& config, const AnswerEngine::Limits& limits) {
  require(limits.max_texts >= 1 && limits.max_texts <= kMaxRows && limits.cache_tokens >= 1, "invalid_argument",
          "an engine takes 1 to " + std::to_string(kMaxRows) + " texts at once, and needs room for a token");
  const std::int64_t length = std::min({config.max_position_embeddings, limits.cache_tokens, limits.max_length});
  return {kMaxRows, limits.max_texts, length, pages_for(limits.cache_tokens)};
}

void convert(std::span<const float> values, DType dtype, std::byte* target) {
  switch (dtype) {
    case DType::kF32: std::ranges::copy(values, reinterpret_cast<float*>(target)); break;
    case DType::kBF16: std::ranges::transform(values, reinterpret_cast<bf16*>(target), to_bf16); break;
    case DType::kF16: std::ranges::transform(values, reinterpret_cast<f16*>(target), to_f16); break;
  }
}

}  // namespace

AnswerEngine::AnswerEngine(const ModelConfig& config, DType dtype, Device device, int num_threads, CpuIsa cpu_isa, const Limits& limits)
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

void AnswerEngine::set_param(std::size_t param, std::int64_t begin, std::span<const float> values) {
  require(param < specs_.size() && begin == num_set_[param] && std::ssize(values) <= specs_[param].numel() - begin, "invalid_argument",
          "parameter " + std::to_string(param) + " does not have " + std::to_string(values.size()) + " elements that follow at " +
              std::to_string(begin));
  if (values.empty()) return;
  std::byte* target = params_[param].data() + static_cast<std::size_t>(begin) * size_of(dtype_);
  if (context_.device.kind == DeviceKind::kCpu) {
    convert(values, dtype_, target);
  } else {
    copy_bytes(context_, {target, values.size() * size_of(dtype_)}, context_.device, converted(values), Device{});
  }
  num_set_[param] += std::ssize(values);
  if (num_set_[param] < specs_[param].numel()) return;
  if (const int layer = specs_[param].layer; --unset_[layer] == 0) use_params(layer);
}

/// Once a layer is complete, so that few parameters are there twice.
void AnswerEngine::use_params(int layer) {
  unset_.erase(layer);
  decoder_.params_changed(layer);
  for (std::size_t param = 0; param < specs_.size(); ++param) {
    if (specs_[param].layer == layer && decoder_.is_copied(param)) params_[param] = Buffer();
  }
}

std::vector<std::byte> AnswerEngine::converted(std::span<const float> values) const {
  std::vector<std::byte> elements(values.size() * size_of(dtype_));
  convert(values, dtype_, elements.data());
  return elements;
}

std::int32_t AnswerEngine::add_adapter(const AdapterConfig& adapter, std::span<const std::vector<float>> values) {
  const std::vector<ParamSpec> specs = ServedAdapter::params(config_, adapter);
  require(std::ranges::equal(specs, values, {}, &ParamSpec::numel, [](const auto& of) { return std::ssize(of); }), "invalid_argument",
          "the values of an adapter are not those of its " + std::to_string(specs.size()) + " parameters");
  std::vector<std::vector<std::byte>> elements;
  for (const std::vector<float>& of : values) elements.push_back(converted(of));
  auto made = decoder_.make_adapter(adapter, elements);
  const std::lock_guard lock(mutex_);
  adapters_.emplace(++last_adapter_, std::move(made));
  return last_adapter_;
}

void AnswerEngine::remove_adapter(std::int32_t adapter) {
  const auto is_of = [&](const AnswerRequest& request) { return request.adapter == adapter; };
  for (Text& text : writing_) {
    if (is_of(text.request)) release(text);
  }
  std::erase_if(writing_, [&](const Text& text) { return is_of(text.request); });
  std::erase_if(waiting_, [&](const Text& text) { return is_of(text.request); });
  const std::lock_guard lock(mutex_);
  std::erase_if(arrived_, is_of);
  adapters_.erase(adapter);
}

std::size_t AnswerEngine::num_bytes() const {
  std::size_t bytes = decoder_.num_bytes();
  for (std::size_t param = 0; param < specs_.size(); ++param) {
    if (!decoder_.is_copied(param)) bytes += static_cast<std::size_t>(specs_[param].numel()) * size_of(dtype_);
  }
  return bytes;
}

void AnswerEngine::add(AnswerRequest request) {
  validate(request.draw);
  require(!request.prompt.empty() && request.max_tokens >= 1 && request.top_log_probs >= 0, "invalid_argument",
          "an answer needs a prompt of at least one token, and max_tokens of at least 1");
  const std::int64_t vocab = decoder_.vocab_size();
  require(std::ranges::all_of(request.prompt, [&](std::int32_t token) { return token >= 0 && token < vocab; }), "token_out_of_vocab",
          "a token of the prompt is outside the vocabulary");
  require(std::ssize(request.prompt) < max_length(), "prompt_too_long",
          "the prompt has " + std::to_string(request.prompt.size()) + " tokens; with its answer a text has at most " +
              std::to_string(max_length()));
  const std::lock_guard lock(mutex_);
  require(request.adapter == 0 || adapters_.contains(request.adapter), "invalid_argument",
          "there is no adapter " + std::to_string(request.adapter));
  arrived_.push_back(std::move(request));
}

void AnswerEngine::cancel(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(arrived_, [&](const AnswerRequest& request) { return request.id == id; });
  cancelled_.push_back(id);
}

void AnswerEngine::take_requests() {
  std::vector<AnswerRequest> arrived;
  std::vector<std::uint64_t> cancelled;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(arrived_);
    cancelled.swap(cancelled_);
  }
  const auto is_cancelled = [&](const Text& text) {
    return std::ranges::find(cancelled, text.request.id) != cancelled.end();
  };
  for (Text& text : writing_) {
    if (is_cancelled(text)) release(text);
  }
  std::erase_if(writing_, is_cancelled);
  std::erase_if(waiting_, is_cancelled);
  for (AnswerRequest& request : arrived) {
    Text text;
    text.tokens = request.prompt;
    text.request = std::move(request);
    waiting_.push_back(std::move(text));
  }
}

/// Begins with waiting texts while there is room for what they have so far.
void AnswerEngine::admit() {
  while (!waiting_.empty() && std::ssize(writing_) < decoder_.limits().max_texts) {
    Text& text = waiting_.front();
    text.pages = cache_.take_beginning(text.request.adapter, text.tokens);
    if (!writing_.empty() && pages_for(std::ssize(text.tokens)) - std::ssize(text.pages) > cache_.num_available()) {
      release(text);
      return;
    }
    text.published = std::ssize(text.pages);
    text.computed = text.published * kPageTokens;
    if (text.cached_tokens < 0) text.cached_tokens = text.computed;
    writing_.push_back(std::move(text));
    waiting_.pop_front();
  }
}

void AnswerEngine::release(Text& text) {
  for (const std::int32_t page : text.pages) cache_.release(page);
  text.pages.clear();
  text.computed = text.published = text.planned = 0;
}

void AnswerEngine::put_back(std::size_t index) {
  release(writing_[index]);
  waiting_.push_front(std::move(writing_[index]));
  writing_.erase(writing_.begin() + static_cast<std::ptrdiff_t>(index));
}

/// Takes pages for the first `end` tokens; texts that began later make room. Returns false if there is none.
bool AnswerEngine::find_pages(std::size_t index, std::int64_t end) {
  while (std::ssize(writing_[index].pages) < pages_for(end)) {
    if (const auto page = cache_.take()) {
      writing_[index].pages.push_back(*page);
    } else if (index + 1 < writing_.size()) {
      put_back(writing_.size() - 1);
    } else {
      return false;
    }
  }
  return true;
}

void AnswerEngine::plan_rows(std::size_t index, std::int64_t count) {
  if (find_pages(index, writing_[index].computed + count)) {
    writing_[index].planned = count;
  } else {
    put_back(index);
  }
}

/// Every text that is being written gets its row, and the rest goes to prompts, the oldest first.
void AnswerEngine::plan() {
  std::int64_t left = decoder_.limits().max_rows;
  for (Text& text : writing_) text.planned = 0;
  for (std::size_t index = 0; index < writing_.size(); ++index) {
    if (writing_[index].pending() == 1) plan_rows(index, 1);
  }
  for (const Text& text : writing_) left -= text.planned;
  for (std::size_t index = 0; index < writing_.size() && left > 0; ++index) {
    if (writing_[index].planned > 0) continue;
    const std::int64_t count = std::min(left, writing_[index].pending());
    plan_rows(index, count);
    left -= count;
  }
}

void AnswerEngine::publish(Text& text) {
  for (; text.published < text.computed / kPageTokens; ++text.published) {
    const auto index = static_cast<std::size_t>(text.published);
    const auto tokens = std::span<const std::int32_t>(text.tokens).subspan(index * kPageTokens, kPageTokens);
    const std::int32_t before = index == 0 ? PageCache::first_of(text.request.adapter) : text.pages[index - 1];
    text.pages[index] = cache_.publish(before, tokens, text.pages[index]);
  }
}

DrawnToken AnswerEngine::draw(const Text& text, const NextToken& next) const {
  const AnswerRequest& request = text.request;
  DrawnToken result{request.id, {}, {}, Finish::kNone, text.cached_tokens};
  const std::int32_t token = draw_token(context_.cpu_isa, next.logits, request.draw, static_cast<std::uint32_t>(text.num_drawn()));
  result.drawn = {token, next.log_prob(token)};
  if (request.top_log_probs > 0) {
    for (const std::int32_t likely : most_likely(known_tokens(next.logits, request.draw), static_cast<std::size_t>(request.top_log_probs))) {
      result.top.push_back({likely, next.log_prob(likely)});
    }
  }
  if (std::ranges::find(request.end_tokens, token) != request.end_tokens.end()) {
    result.finish = Finish::kEndToken;
  } else if (text.num_drawn() + 1 == request.max_tokens || std::ssize(text.tokens) + 1 == max_length()) {
    result.finish = Finish::kLength;
  }
  return result;
}

/// The texts that have rows, those of one adapter together.
std::vector<AnswerEngine::Text*> AnswerEngine::planned_texts() {
  std::vector<Text*> texts;
  for (Text& text : writing_) {
    if (text.planned > 0) texts.push_back(&text);
  }
  std::ranges::stable_sort(texts, {}, [](const Text* text) { return text->request.adapter; });
  return texts;
}

std::vector<DrawnToken> AnswerEngine::step() {
  if (!unset_.empty()) {
    const auto unset = std::ranges::mismatch(num_set_, specs_, {}, {}, &ParamSpec::numel).in2;
    throw Error("invalid_argument", "parameter " + unset->name + " was not set");
  }
  take_requests();
  admit();
  plan();
  std::vector<TextRows> rows;
  std::vector<Text*> drawing;
  for (Text* text : planned_texts()) {
    const auto first = static_cast<std::size_t>(text->computed), count = static_cast<std::size_t>(text->planned);
    const bool is_whole = text->planned == text->pending();
    rows.push_back({std::span<const std::int32_t>(text->tokens).subspan(first, count), text->computed, text->pages, is_whole,
                    text->request.adapter == 0 ? nullptr : adapters_.at(text->request.adapter).get()});
    if (is_whole) drawing.push_back(text);
  }
  if (rows.empty()) return {};
  const std::span<const NextToken> next = decoder_.append(rows);
  std::vector<DrawnToken> drawn(drawing.size());
  pool_.parallel_for(std::ssize(drawn), [&](std::int64_t index, int) {
    const auto i = static_cast<std::size_t>(index);
    drawn[i] = draw(*drawing[i], next[i]);
  });
  for (Text& text : writing_) {
    text.computed += text.planned;
    publish(text);
  }
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (drawn[i].finish != Finish::kNone) release(*drawing[i]);
    else drawing[i]->tokens.push_back(drawn[i].drawn.token);
  }
  const auto has_ended = [&](const Text& text) {
    return std::ranges::any_of(drawn, [&](const DrawnToken& token) { return token.id == text.request.id && token.finish != Finish::kNone; });
  };
  std::erase_if(writing_, has_ended);
  return drawn;
}

}  // namespace zerofleet
