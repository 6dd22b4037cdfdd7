#include "train/sampler.h"

#include <algorithm>
#include <string>

#include "core/dtype.h"
#include "core/error.h"

namespace zerofleet {
namespace {

constexpr std::int64_t kMaxWindow = 512;  // tokens of context that a draw looks back on

}  // namespace

Sampler::Sampler(const ModelConfig& config, int num_threads, CpuIsa cpu_isa)
    : config_(config),
      specs_(param_specs(config)),
      pool_(num_threads),
      context_{Device{}, &pool_, cpu_isa},
      is_set_(specs_.size(), false),
      window_(std::min<std::int64_t>(kMaxWindow, config.max_position_embeddings)),
      model_(context_, config, DType::kBF16, 1, window_) {
  std::vector<const std::byte*> pointers;
  for (const ParamSpec& spec : specs_) {
    params_.emplace_back(context_.device, static_cast<std::size_t>(spec.numel()) * sizeof(bf16));
    pointers.push_back(params_.back().data());
  }
  model_.bind_params(pointers);
}

void Sampler::set_param(std::size_t param, std::span<const float> values) {
  require(param < specs_.size() && static_cast<std::int64_t>(values.size()) == specs_[param].numel(), "invalid_argument",
          "parameter " + std::to_string(param) + " does not have " + std::to_string(values.size()) + " elements");
  std::ranges::transform(values, params_[param].as<bf16>().begin(), to_bf16);
  is_set_[param] = true;
  packed_ = false;
}

std::vector<std::int32_t> Sampler::sample(std::span<const std::int32_t> prompt, const SampleOptions& options) {
  validate(options);
  require(!prompt.empty(), "invalid_argument", "the prompt needs at least one token");
  require(std::ranges::all_of(prompt, [&](std::int32_t token) { return token >= 0 && token < config_.vocab_size; }),
          "token_out_of_vocab", "a token of the prompt is outside the vocabulary");
  const auto unset = std::ranges::find(is_set_, false);
  if (unset != is_set_.end()) {
    throw Error("invalid_argument", "parameter " + specs_[static_cast<std::size_t>(unset - is_set_.begin())].name + " was not set");
  }
  if (!packed_) model_.params_changed();
  packed_ = true;
  std::vector<std::int32_t> context(prompt.begin(), prompt.end());
  std::vector<float> logits(static_cast<std::size_t>(config_.vocab_size));
  for (std::int64_t i = 0; i < options.max_tokens; ++i) {
    const auto length = std::min<std::size_t>(context.size(), static_cast<std::size_t>(window_));
    model_.logits(std::span<const std::int32_t>(context).last(length), logits);
    context.push_back(draw_token(logits, options, static_cast<std::uint32_t>(i)));
  }
  return {context.begin() + static_cast<std::ptrdiff_t>(prompt.size()), context.end()};
}

}  // namespace zerofleet
