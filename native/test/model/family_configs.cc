#include "test/model/family_configs.h"

#include <cmath>

namespace zerofleet::test {
namespace {

ModelConfig llama() {
  ModelConfig config;
  config.hidden_size = 48;
  config.intermediate_size = 112;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 12;
  config.vocab_size = 101;
  config.max_position_embeddings = 64;
  config.rope_scaling.type = RopeScalingType::kLlama3;
  config.rope_scaling.factor = 4;
  config.rope_scaling.original_max_position_embeddings = 16;
  return config;
}

ModelConfig gpt2() {
  ModelConfig config = llama();
  config.naming = "gpt2";
  config.norm = NormType::kLayer;
  config.positions = PositionType::kLearned;
  config.rope_scaling = {};
  config.num_key_value_heads = config.num_attention_heads;
  config.qkv_bias = config.output_bias = config.mlp_bias = true;
  config.mlp = MlpType::kGeluTanh;
  config.tie_word_embeddings = true;
  config.embedding_dropout = 0.1;
  config.attention_dropout = 0.15;
  config.residual_dropout = 0.2;
  return config;
}

ModelConfig mistral() {
  ModelConfig config = llama();
  config.rope_scaling = {};
  config.layer_windows = {5, 5};
  config.attention_dropout = 0.1;
  return config;
}

ModelConfig mixtral() {
  ModelConfig config = llama();
  config.naming = "mixtral";
  config.intermediate_size = 40;
  config.rope_scaling = {};
  config.num_experts = 5;
  config.experts_per_token = 2;
  config.router_aux_loss_coef = 0.3;
  config.attention_dropout = 0.1;
  return config;
}

ModelConfig qwen3_moe() {
  ModelConfig config = mixtral();
  config.naming = "qwen3_moe";
  config.qk_norm = true;
  config.head_dim = 8;
  return config;
}

ModelConfig qwen2() {
  ModelConfig config = llama();
  config.rope_scaling = {};
  config.qkv_bias = true;
  config.layer_windows = {0, 6};
  return config;
}

ModelConfig qwen3() {
  ModelConfig config = llama();
  config.rope_scaling = {};
  config.qk_norm = true;
  config.head_dim = 8;
  config.tie_word_embeddings = true;
  return config;
}

ModelConfig smollm3() {
  ModelConfig config = llama();
  config.rope_scaling = {};
  config.layer_rope = {1, 0};
  config.layer_windows = {0, 6};
  return config;
}

ModelConfig granite() {
  ModelConfig config = llama();
  config.rope_scaling = {};
  config.attention_scale = 0.09375;
  config.embedding_scale = 12;
  config.residual_scale = 0.21875;
  config.logits_scale = 0.125;
  config.attention_dropout = 0.1;
  config.tie_word_embeddings = true;
  return config;
}

ModelConfig olmo2() {
  ModelConfig config = llama();
  config.naming = "olmo2";
  config.rope_scaling = {};
  config.qk_norm = true;
  config.qk_norm_scope = QkNormScope::kAll;
  config.layer_windows = {6, 0};
  config.attention_dropout = 0.1;
  config.residual_dropout = 0.1;
  return config;
}

ModelConfig olmo3() {
  ModelConfig config = olmo2();
  config.residual_dropout = 0;
  config.layer_rope = {2, 1};
  config.local_rope_theta = 500;
  config.rope_scaling.type = RopeScalingType::kYarn;
  config.rope_scaling.factor = 4;
  config.rope_scaling.original_max_position_embeddings = 16;
  return config;
}

ModelConfig gemma3() {
  ModelConfig config = olmo3();
  config.naming = "gemma";
  config.qk_norm_scope = QkNormScope::kHead;
  config.norm_offset = 1;
  config.mlp = MlpType::kGegluTanh;
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  config.rounds_embedding_scale = true;
  config.tie_word_embeddings = true;
  return config;
}

ModelConfig gemma2() {
  ModelConfig config = gemma3();
  config.rope_scaling = {};
  config.layer_rope = {};
  config.qk_norm = false;
  config.attention_soft_cap = 2;
  config.logits_soft_cap = 3;
  return config;
}

ModelConfig phi3() {
  ModelConfig config = llama();
  config.naming = "phi3";
  config.rotary_dim = 8;
  config.rope_scaling = {};
  config.rope_scaling.type = RopeScalingType::kLongrope;
  config.rope_scaling.factor = 8;
  config.rope_scaling.original_max_position_embeddings = 2;
  config.rope_scaling.attention_factor = 1.1;
  config.rope_scaling.short_factor = {1, 1.25, 1.5, 2};
  config.rope_scaling.long_factor = {1.5, 3, 5, 9};
  config.layer_windows = {6, 6};
  config.attention_dropout = 0.1;
  config.residual_dropout = 0.1;
  return config;
}

ModelConfig glm4() {
  ModelConfig config = llama();
  config.naming = "glm4";
  config.rotary_dim = 6;
  config.rope_interleaved = true;
  config.qkv_bias = true;
  config.attention_dropout = 0.1;
  return config;
}

}  // namespace

std::vector<FamilyConfig> family_configs() {
  return {{"gpt2", gpt2()},           {"llama", llama()},     {"mistral", mistral()},
          {"mixtral", mixtral()},     {"qwen2", qwen2()},     {"qwen3", qwen3()},
          {"qwen3_moe", qwen3_moe()}, {"smollm3", smollm3()}, {"granite", granite()},
          {"olmo2", olmo2()},         {"olmo3", olmo3()},     {"gemma3", gemma3()},
          {"gemma2", gemma2()},       {"phi3", phi3()},       {"glm4", glm4()}};
}

}  // namespace zerofleet::test
