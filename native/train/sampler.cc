#include "train/sampler.h"

#include <algorithm>
#include <string>

#include "core/dtype.h"
#include "core/error.h"
#include "model/transformer/transformer.h"

namespace zerofleet {
namespace {

constexpr std::int64_t kMaxContext = 4096;  // tokens that a draw looks back on at most

}  // namespace

Sampler::Sampler(const ModelConfig& config, int num_threads, CpuIsa cpu_isa)
    : config_(config),
      specs_(param_specs(config)),
      pool_(num_threads),
      context_{Device{}, &pool_, cpu_isa},
      is_set_(specs_.size(), false),
      decoder_(context_, config, DType::kBF16, std::min(kMaxContext, config.max_position_embeddings)) {
  std::vector<const std::byte*> pointers;
  for (const ParamSpec& spec : specs_) {
    params_.emplace_back(context_.device, static_cast<std::size_t>(spec.numel()) * sizeof(bf16));
    pointers.push_back(params_.back().data());
  }
  decoder_.bind_params(pointers);
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
  if (!packed_) decoder_.params_changed();
  packed_ = true;
  decoder_.clear();
  std::vector<std::int32_t> context(prompt.begin(), prompt.end());
  std::vector<float> logits(static_cast<std::size_t>(config_.vocab_size));
  std::size_t num_new = context.size();
  for (std::int64_t i = 0; i < options.max_tokens; ++i) {
    if (static_cast<std::int64_t>(num_new) > decoder_.capacity() - decoder_.length()) {
      decoder_.clear();
      num_new = std::min(context.size(), static_cast<std::size_t>((decoder_.capacity() + 1) / 2));
    }
    decoder_.append(std::span<const std::int32_t>(context).last(num_new), logits);
    const std::int32_t token = draw_token(logits, options, static_cast<std::uint32_t>(i));
    if (token == options.end_token) break;
    context.push_back(token);
    num_new = 1;
  }
  return {context.begin() + static_cast<std::ptrdiff_t>(prompt.size()), context.end()};
}

}  // namespace zerofleet
