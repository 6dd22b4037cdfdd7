#pragma once

#include <cstdint>

namespace zerofleet {

/// Architecture of a decoder-only transformer of the Llama family, with the field names of a Hugging Face config.json:
/// RMSNorm, rotary positions (halves rotated against each other), grouped-query attention, SwiGLU, no biases.
struct ModelConfig {
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000.0;
  bool tie_word_embeddings = false;
  double initializer_range = 0.02;

  std::int64_t query_size() const { return num_attention_heads * head_dim; }
  std::int64_t key_value_size() const { return num_key_value_heads * head_dim; }
  /// Columns of the fused query, key, value projection, in that order.
  std::int64_t qkv_size() const { return query_size() + 2 * key_value_size(); }
};

/// Throws Error{"invalid_model_config"} that names the field and says what it should be.
void validate(const ModelConfig& config);

}  // namespace zerofleet
