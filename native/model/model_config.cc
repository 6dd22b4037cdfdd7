#include "model/model_config.h"

#include <string>
#include <utility>

#include "core/error.h"

namespace zerofleet {
namespace {

constexpr const char* kCode = "invalid_model_config";

void check_sizes(const ModelConfig& config) {
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"hidden_size", config.hidden_size},
      {"intermediate_size", config.intermediate_size},
      {"num_hidden_layers", config.num_hidden_layers},
      {"num_attention_heads", config.num_attention_heads},
      {"num_key_value_heads", config.num_key_value_heads},
      {"head_dim", config.head_dim},
      {"vocab_size", config.vocab_size},
      {"max_position_embeddings", config.max_position_embeddings},
  };
  for (const auto& [name, size] : sizes) {
    require(size >= 1 && size <= (std::int64_t{1} << 24), kCode,
            std::string(name) + " is " + std::to_string(size) + "; it must be from 1 to 16777216");
  }
}

}  // namespace

void validate(const ModelConfig& config) {
  check_sizes(config);
  require(config.head_dim % 2 == 0, kCode,
          "head_dim is " + std::to_string(config.head_dim) + "; rotary positions need an even one");
  require(config.intermediate_size % 2 == 0, kCode,
          "intermediate_size is " + std::to_string(config.intermediate_size) + "; it must be even");
  require(config.num_attention_heads % config.num_key_value_heads == 0, kCode,
          "num_attention_heads (" + std::to_string(config.num_attention_heads) +
              ") must be a multiple of num_key_value_heads (" + std::to_string(config.num_key_value_heads) + ")");
  require(config.rms_norm_eps > 0 && config.rms_norm_eps < 1, kCode, "rms_norm_eps must be above 0 and below 1");
  require(config.rope_theta > 1 && config.rope_theta < 1e15, kCode, "rope_theta must be above 1 and below 1e15");
  require(config.initializer_range > 0 && config.initializer_range < 1e3, kCode,
          "initializer_range must be above 0 and below 1000");
}

}  // namespace zerofleet
