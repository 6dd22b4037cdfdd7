#include <string>
#include <utility>
#include <vector>

#include "model/transformer.h"

namespace zerofleet {
namespace {

ParamSpec matrix(std::string name, std::int64_t rows, std::int64_t cols, double std) {
  return {std::move(name), {rows, cols}, ParamGroup::kDecay, ParamInit::kNormal, static_cast<float>(std)};
}

ParamSpec norm(std::string name, std::int64_t size) {
  return {std::move(name), {size}, ParamGroup::kNoDecay, ParamInit::kOnes, 0.0F};
}

}  // namespace

std::vector<ParamSpec> param_specs(const ModelConfig& config) {
  validate(config);
  const std::int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  const double std = config.initializer_range;
  std::vector<ParamSpec> specs;
  specs.push_back(matrix("model.embed_tokens.weight", config.vocab_size, hidden, std));
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    specs.push_back(norm(prefix + "input_layernorm.weight", hidden));
    specs.push_back(matrix(prefix + "self_attn.q_proj.weight", config.query_size(), hidden, std));
    specs.push_back(matrix(prefix + "self_attn.k_proj.weight", config.key_value_size(), hidden, std));
    specs.push_back(matrix(prefix + "self_attn.v_proj.weight", config.key_value_size(), hidden, std));
    specs.push_back(matrix(prefix + "self_attn.o_proj.weight", hidden, config.query_size(), std));
    specs.push_back(norm(prefix + "post_attention_layernorm.weight", hidden));
    specs.push_back(matrix(prefix + "mlp.gate_proj.weight", inner, hidden, std));
    specs.push_back(matrix(prefix + "mlp.up_proj.weight", inner, hidden, std));
    specs.push_back(matrix(prefix + "mlp.down_proj.weight", hidden, inner, std));
  }
  specs.push_back(norm("model.norm.weight", hidden));
  if (!config.tie_word_embeddings) specs.push_back(matrix("lm_head.weight", config.vocab_size, hidden, std));
  return specs;
}

}  // namespace zerofleet
