#include "bench/gpu/configs.h"

#include <cmath>

#include "core/error.h"
#include "model/transformer/transformer.h"

namespace zerofleet::bench {
namespace {

struct Widths {
  std::int64_t layers, hidden, heads, kv_heads, inner, vocab;
};

ModelConfig llama(const Widths& widths, std::int64_t length) {
  ModelConfig config;
  config.num_hidden_layers = widths.layers;
  config.hidden_size = widths.hidden;
  config.num_attention_heads = widths.heads;
  config.num_key_value_heads = widths.kv_heads;
  config.head_dim = widths.hidden / widths.heads;
  config.intermediate_size = widths.inner;
  config.vocab_size = widths.vocab;
  config.max_position_embeddings = length;
  config.rope_theta = 500'000;
  config.tie_word_embeddings = true;
  return config;
}

ModelConfig gpt2(const Widths& widths) {
  ModelConfig config = llama(widths, 1024);
  config.naming = "gpt2";
  config.norm = NormType::kLayer;
  config.positions = PositionType::kLearned;
  config.qkv_bias = config.output_bias = config.mlp_bias = true;
  config.mlp = MlpType::kGeluTanh;
  config.residual_initializer_range = 0.02 / std::sqrt(2.0 * static_cast<double>(widths.layers));
  return config;
}

constexpr Widths kGpt2{12, 768, 12, 12, 3072, 50'257};
constexpr Widths kGpt2Xl{48, 1600, 25, 25, 6400, 50'257};
constexpr Widths kLlama1b{16, 2048, 32, 8, 8192, 128'256};
constexpr Widths kTiny{2, 64, 2, 2, 128, 161};
constexpr Widths kTinyGrouped{2, 64, 2, 1, 128, 160};

}  // namespace

std::vector<TrainingShape> full_trainings() {
  return {{"gpt2", gpt2(kGpt2), {16, 1024}, 4, 3, 8, true},
          {"gpt2-xl", gpt2(kGpt2Xl), {16, 1024}},
          {"llama-1b", llama(kLlama1b, 1024), {16, 1024}},
          {"llama-1b-4096", llama(kLlama1b, 4096), {4, 4096}}};
}

std::vector<TrainingShape> tiny_trainings() {
  return {{"gpt2-tiny", gpt2(kTiny), {2, 32}, 2, 1, 1, true},
          {"llama-tiny", llama(kTinyGrouped, 32), {2, 32}, 2, 1, 1}};
}

TrainingShape training_named(const std::string& name) {
  for (const auto& trainings : {full_trainings(), tiny_trainings()}) {
    for (const TrainingShape& training : trainings) {
      if (training.name == name) return training;
    }
  }
  throw Error("invalid_argument", "there is no configuration '" + name + "'");
}

double multiplied_params(const ModelConfig& config) {
  double count = 0;
  for (const ParamSpec& spec : param_specs(config)) {
    if (spec.shape.size() > 1) count += static_cast<double>(spec.numel());
  }
  const std::int64_t looked_up = (config.tie_word_embeddings ? 0 : config.vocab_size) +
                                 (config.positions == PositionType::kLearned ? config.max_position_embeddings : 0);
  return count - static_cast<double>(looked_up * config.hidden_size);
}

double operations_per_token(const TrainingShape& training, bool attention) {
  const ModelConfig& c = training.model;
  // Two products of head_dim forward and four backward, over half of the keys on average.
  const double pairs = attention ? static_cast<double>(training.micro_batch.length + 1) / 2 : 0;
  return 6 * multiplied_params(c) + 12 * pairs * static_cast<double>(c.num_hidden_layers * c.query_size());
}

}  // namespace zerofleet::bench
