#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/quant_format.h"
#include "kernels/attention/rope_frequencies.h"
#include "model/config/adapter_config.h"

namespace zerofleet {

enum class NormType : std::uint8_t { kRms, kLayer };
enum class PositionType : std::uint8_t { kRope, kLearned };
enum class QkNormScope : std::uint8_t { kHead, kAll };
enum class MlpType : std::uint8_t { kSwiglu, kGegluTanh, kGelu, kGeluTanh };

inline constexpr std::initializer_list<std::pair<const char*, QuantFormat>> kQuantFormatNames = {
    {"nf4", QuantFormat::kNf4}, {"int8", QuantFormat::kInt8}};

/// Architecture of a decoder-only transformer: the contents of a family's config.json in the form that all families
/// share, Architecture in contracts/architecture.ts. The defaults are Llama's.
struct ModelConfig {
  std::string naming = "llama";  // names and order of the parameters
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
  double norm_offset = 0;  // added to the weights of RMSNorm
  PositionType positions = PositionType::kRope;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  /// Per layer: 1 rotates queries and keys by rope_theta and rope_scaling, 2 by local_rope_theta alone; 0 has no
  /// positions. Empty: 1 everywhere.
  std::vector<std::int64_t> layer_rope;
  double local_rope_theta = 10000.0;
  std::int64_t rotary_dim = 0;    // leading elements of a head that are rotated; 0: all
  bool rope_interleaved = false;  // rotated elements 2i and 2i + 1 are a pair; else element i of both halves
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool qkv_by_head = false;  // rows of the matrix of queries, keys and values: those of head 0, then of head 1, ...
  bool qk_norm = false;      // RMSNorm of each query and key head before the rotation
  QkNormScope qk_norm_scope = QkNormScope::kHead;  // kAll: over all query heads together, and all key heads
  double attention_scale = 0;                      // of attention's scores; 0: 1 / sqrt(head_dim)
  double attention_soft_cap = 0;                   // of the scaled scores; 0: none
  std::vector<std::int64_t> layer_windows;  // per layer: tokens that a query sees, itself included; 0: all before it
  MlpType mlp = MlpType::kSwiglu;
  std::int64_t num_experts = 0;  // 0: one dense MLP per layer
  std::int64_t experts_per_token = 0;
  bool norm_topk_prob = true;           // the probabilities of a token's experts are divided by their sum
  std::int64_t shared_expert_size = 0;  // width inside an expert of all tokens, which has a gate; 0: there is none
  double router_aux_loss_coef = 0;
  bool tie_word_embeddings = false;
  double embedding_scale = 1;           // of the embeddings of tokens
  bool rounds_embedding_scale = false;  // to the compute dtype
  bool parallel_residual = false;       // the MLP reads the layer's input; else the stream after attention
  double residual_scale = 1;            // of the outputs of attention and MLP that are added to the residual stream
  double logits_scale = 1;
  double logits_soft_cap = 0;  // of the scaled logits; 0: none
  double embedding_dropout = 0;
  double attention_dropout = 0;  // of the attention's probabilities
  double residual_dropout = 0;   // of the outputs of attention and MLP that are added to the residual stream
  double initializer_range = 0.02;
  double residual_initializer_range = 0.02;  // of the matrices whose output is added to the residual stream
  std::optional<AdapterConfig> adapter;      // over the model, whose own parameters are frozen then
  /// Of the matrices of layers that are not trained, but for routers.
  std::optional<QuantFormat> quantization;

  template <class Fields>
  void fields(Fields& field) {
    field("naming", naming);
    field("hidden_size", hidden_size);
    field("intermediate_size", intermediate_size);
    field("num_hidden_layers", num_hidden_layers);
    field("num_attention_heads", num_attention_heads);
    field("num_key_value_heads", num_key_value_heads);
    field("head_dim", head_dim);
    field("vocab_size", vocab_size);
    field("max_position_embeddings", max_position_embeddings);
    field("norm", norm, {{"rms", NormType::kRms}, {"layer", NormType::kLayer}});
    field("norm_eps", norm_eps);
    field("norm_offset", norm_offset);
    field("positions", positions, {{"rope", PositionType::kRope}, {"learned", PositionType::kLearned}});
    field("rope_theta", rope_theta);
    field("rope_scaling", rope_scaling);
    field("layer_rope", layer_rope);
    field("local_rope_theta", local_rope_theta);
    field("rotary_dim", rotary_dim);
    field("rope_interleaved", rope_interleaved);
    field("qkv_bias", qkv_bias);
    field("output_bias", output_bias);
    field("mlp_bias", mlp_bias);
    field("qkv_by_head", qkv_by_head);
    field("qk_norm", qk_norm);
    field("qk_norm_scope", qk_norm_scope, {{"head", QkNormScope::kHead}, {"all", QkNormScope::kAll}});
    field("attention_scale", attention_scale);
    field("attention_soft_cap", attention_soft_cap);
    field("layer_windows", layer_windows);
    field("mlp", mlp,
          {{"swiglu", MlpType::kSwiglu},
           {"geglu_tanh", MlpType::kGegluTanh},
           {"gelu", MlpType::kGelu},
           {"gelu_tanh", MlpType::kGeluTanh}});
    field("num_experts", num_experts);
    field("experts_per_token", experts_per_token);
    field("norm_topk_prob", norm_topk_prob);
    field("shared_expert_size", shared_expert_size);
    field("router_aux_loss_coef", router_aux_loss_coef);
    field("tie_word_embeddings", tie_word_embeddings);
    field("embedding_scale", embedding_scale);
    field("rounds_embedding_scale", rounds_embedding_scale);
    field("parallel_residual", parallel_residual);
    field("residual_scale", residual_scale);
    field("logits_scale", logits_scale);
    field("logits_soft_cap", logits_soft_cap);
    field("embedding_dropout", embedding_dropout);
    field("attention_dropout", attention_dropout);
    field("residual_dropout", residual_dropout);
    field("initializer_range", initializer_range);
    field("residual_initializer_range", residual_initializer_range);
    field("adapter", adapter);
    field("quantization", quantization, kQuantFormatNames);
  }

  std::int64_t query_size() const { return num_attention_heads * head_dim; }
  std::int64_t key_value_size() const { return num_key_value_heads * head_dim; }
  /// Columns of the fused query, key, value projection, in that order.
  std::int64_t qkv_size() const { return query_size() + 2 * key_value_size(); }
  /// Values that a norm of queries, or of keys, is over.
  std::int64_t query_norm_size() const { return qk_norm_scope == QkNormScope::kAll ? query_size() : head_dim; }
  std::int64_t key_norm_size() const { return qk_norm_scope == QkNormScope::kAll ? key_value_size() : head_dim; }
  bool norm_bias() const { return norm == NormType::kLayer; }
  /// The output projection has its own matrix.
  bool own_head() const { return !tie_word_embeddings; }
  bool gated_mlp() const { return mlp == MlpType::kSwiglu || mlp == MlpType::kGegluTanh; }
  std::int64_t gate_up_size() const { return 2 * intermediate_size; }
  static std::int64_t shared_logits() { return 1; }
  std::int64_t rotated() const { return rotary_dim == 0 ? head_dim : rotary_dim; }
  std::int64_t rope_of(std::size_t layer) const { return layer_rope.empty() ? 1 : layer_rope[layer]; }
  bool has_local_rope() const { return std::ranges::find(layer_rope, 2) != layer_rope.end(); }
  /// The model without its adapter is that at the start of the training.
  bool has_base() const { return adapter && adapter->modules_to_save.empty(); }
  /// 0 where layer_windows is empty.
  std::int64_t window(std::size_t layer) const { return layer_windows.empty() ? 0 : layer_windows[layer]; }
};

/// Throws Error{"invalid_model_config"} that names the field and the allowed values.
void validate(const ModelConfig& config);
/// The same for a model that is trained.
void validate_trained(const ModelConfig& config);

}  // namespace zerofleet
