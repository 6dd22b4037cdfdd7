#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/quant_format.h"
#include "kernels/attention/rope_frequencies.h"
#include "model/config/adapter_config.h"

namespace zerofleet {

/// Names and layout of parameters. Llama's serve Mistral, Qwen2 and Qwen3 too.
enum class ParamNaming : std::uint8_t { kGpt2, kLlama, kMixtral };
enum class NormType : std::uint8_t { kRms, kLayer };
enum class PositionType : std::uint8_t { kRope, kLearned };
enum class MlpType : std::uint8_t { kSwiglu, kGelu, kGeluTanh };

/// Architecture of a decoder-only transformer: the contents of a Hugging Face config.json of GPT-2, Llama, Mistral,
/// Qwen2, Qwen3 or Mixtral, in one flat form. The defaults are Llama's.
struct ModelConfig {
  ParamNaming naming = ParamNaming::kLlama;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;
  NormType norm = NormType::kRms;
  double norm_eps = 1e-5;
  PositionType positions = PositionType::kRope;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;                     // RMSNorm of each query and key head before the rotation
  std::vector<std::int64_t> layer_windows;  // per layer: tokens that a query sees, itself included; 0: all before it
  MlpType mlp = MlpType::kSwiglu;
  std::int64_t num_experts = 0;             // 0: one dense MLP per layer
  std::int64_t experts_per_token = 0;
  double router_aux_loss_coef = 0;
  bool tie_word_embeddings = false;
  double embedding_dropout = 0;
  double attention_dropout = 0;  // of the attention's probabilities
  double residual_dropout = 0;   // of the outputs of attention and MLP that are added to the residual stream
  double initializer_range = 0.02;
  double residual_initializer_range = 0.02;  // of the matrices whose output is added to the residual stream
  std::optional<AdapterConfig> adapter;      // over the model, whose own parameters are frozen then
  std::optional<QuantFormat> quantization;   // under an adapter: of the frozen matrices of layers, but for routers

  std::int64_t query_size() const { return num_attention_heads * head_dim; }
  std::int64_t key_value_size() const { return num_key_value_heads * head_dim; }
  /// Columns of the fused query, key, value projection, in that order.
  std::int64_t qkv_size() const { return query_size() + 2 * key_value_size(); }
  bool gated_mlp() const { return mlp == MlpType::kSwiglu; }
  /// 0 where layer_windows is empty.
  std::int64_t window(std::size_t layer) const { return layer_windows.empty() ? 0 : layer_windows[layer]; }
};

/// Throws Error{"invalid_model_config"} that names the field and the allowed values.
void validate(const ModelConfig& config);

}  // namespace zerofleet
