#include "model/config/model_config.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "model/config/model_parts.h"

namespace zerofleet {
namespace {

void check(bool holds, const std::string& message) { require(holds, "invalid_model_config", message); }

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
    check(size >= 1 && size <= (std::int64_t{1} << 24),
          std::string(name) + " is " + std::to_string(size) + "; it must be from 1 to 16777216");
  }
}

void check_attention(const ModelConfig& config) {
  check(config.num_attention_heads % config.num_key_value_heads == 0,
        "num_attention_heads (" + std::to_string(config.num_attention_heads) +
            ") must be a multiple of num_key_value_heads (" + std::to_string(config.num_key_value_heads) + ")");
  check(!config.qkv_by_head || config.num_key_value_heads == config.num_attention_heads,
        "num_key_value_heads must be num_attention_heads with qkv_by_head");
  check(
      config.layer_windows.empty() || config.layer_windows.size() == static_cast<std::size_t>(config.num_hidden_layers),
      "layer_windows must have one window per layer, or none at all");
  for (const std::int64_t window : config.layer_windows) {
    check(window >= 0, "layer_windows: " + std::to_string(window) + "; a window is a number of tokens, or 0 for all");
  }
}

void check_longrope(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  check(!config.has_local_rope(), "rope_scaling of type longrope applies to all layers");
  for (const std::vector<double>& factors : {scaling.short_factor, scaling.long_factor}) {
    check(2 * std::ssize(factors) == config.rotated(), "rope_scaling.short_factor and long_factor must have " +
                                                           std::to_string(config.rotated() / 2) +
                                                           " numbers, one for each pair of rotated elements");
    check(std::ranges::all_of(factors, [](double value) { return value > 0 && value < 1e6; }),
          "numbers of rope_scaling.short_factor and long_factor must be above 0 and below 1000000");
  }
  check(scaling.original_max_position_embeddings >= 2,
        "rope_scaling.original_max_position_embeddings must be at least 2");
  check(scaling.attention_factor >= 0 && scaling.attention_factor < 1e3,
        "rope_scaling.attention_factor must be from 0 to below 1000");
}

void check_positions(const ModelConfig& config) {
  check(config.layer_rope.empty() || config.layer_rope.size() == static_cast<std::size_t>(config.num_hidden_layers),
        "layer_rope must have one number per layer, or none at all");
  for (const std::int64_t rope : config.layer_rope)
    check(rope >= 0 && rope <= 2, "layer_rope: " + std::to_string(rope) + "; it must be 0, 1 or 2");
  if (config.positions == PositionType::kLearned) return;
  check(config.head_dim % 2 == 0,
        "head_dim is " + std::to_string(config.head_dim) + "; rotary positions need an even one");
  check(config.rotary_dim >= 0 && config.rotary_dim <= config.head_dim && config.rotary_dim % 2 == 0,
        "rotary_dim must be even, and from 0 to head_dim");
  check(config.rope_theta > 1 && config.rope_theta < 1e15, "rope_theta must be above 1 and below 1e15");
  check(config.local_rope_theta > 1 && config.local_rope_theta < 1e15,
        "local_rope_theta must be above 1 and below 1e15");
  const RopeScaling& scaling = config.rope_scaling;
  if (scaling.type == RopeScalingType::kNone) return;
  check(scaling.factor >= 1 && scaling.factor < 1e6, "rope_scaling.factor must be from 1 to below 1000000");
  if (scaling.type == RopeScalingType::kLinear) return;
  check(scaling.original_max_position_embeddings >= 1,
        "rope_scaling.original_max_position_embeddings must be at least 1");
  if (scaling.type == RopeScalingType::kLongrope) return check_longrope(config);
  if (scaling.type == RopeScalingType::kLlama3) {
    check(scaling.low_freq_factor > 0 && scaling.high_freq_factor > scaling.low_freq_factor,
          "rope_scaling.high_freq_factor must be above low_freq_factor, which must be above 0");
    return;
  }
  check(scaling.beta_slow > 0 && scaling.beta_fast > scaling.beta_slow,
        "rope_scaling.beta_fast must be above beta_slow, which must be above 0");
  check(scaling.attention_factor >= 0 && scaling.attention_factor < 1e3,
        "rope_scaling.attention_factor must be from 0 to below 1000");
  check(scaling.mscale >= 0 && scaling.mscale <= 1e6 && scaling.mscale_all_dim >= 0 && scaling.mscale_all_dim <= 1e6,
        "rope_scaling.mscale and mscale_all_dim must be from 0 to 1000000");
}

void check_experts(const ModelConfig& config) {
  if (config.num_experts == 0) return;
  check(config.num_experts >= 1 && config.num_experts <= 1024, "num_experts must be from 1 to 1024");
  check(config.mlp == MlpType::kSwiglu, "mlp must be swiglu: experts have no other");
  check(config.experts_per_token >= 1 && config.experts_per_token <= config.num_experts,
        "experts_per_token must be from 1 to num_experts");
  check(!config.mlp_bias, "mlp_bias must be false: matrices of experts have no biases");
  check(config.shared_expert_size >= 0 && config.shared_expert_size <= (std::int64_t{1} << 24) &&
            config.shared_expert_size % 2 == 0,
        "shared_expert_size must be even, and from 0 to 16777216");
  check(config.router_aux_loss_coef >= 0 && config.router_aux_loss_coef < 1e3,
        "router_aux_loss_coef must be from 0 to below 1000");
}

void check_parts(const ModelConfig& config, const ModelParts& parts) {
  const std::string naming = "naming " + config.naming;
  check(parts.has(ModelPart::kRouter) == (config.num_experts > 0),
        naming + (config.num_experts > 0 ? " is for models without experts: num_experts must be 0"
                                         : " is for models with experts: num_experts must be at least 1"));
  check(parts.has(ModelPart::kSharedRouter) == (config.shared_expert_size > 0),
        naming + (config.shared_expert_size > 0
                      ? " has no expert for all tokens: shared_expert_size must be 0"
                      : " has an expert for all tokens: shared_expert_size must be at least 2"));
  check(parts.has(ModelPart::kPositions) == (config.positions == PositionType::kLearned),
        naming + " is for models with " +
            (config.positions == PositionType::kLearned ? "rotary positions" : "learned positions"));
  check(!config.qkv_by_head || parts.has(ModelPart::kQkv), naming + " has no matrix for qkv_by_head");
  check(!config.parallel_residual || (parts.has(ModelPart::kInputNorm) && parts.has(ModelPart::kPostAttentionNorm) &&
                                      !parts.has(ModelPart::kAttentionOutputNorm)),
        naming + " has other norms than those of parallel_residual");
  check(parts.has(ModelPart::kQueryNorm) == config.qk_norm, naming + " is for models without qk_norm");
  check((parts.has(ModelPart::kGate) || parts.has(ModelPart::kGateUp)) == config.gated_mlp(),
        naming + " is for models with " + (config.gated_mlp() ? "an MLP without a gate" : "a gate in the MLP"));
}

void check_scales(const ModelConfig& config) {
  const std::pair<const char*, double> scales[] = {{"embedding_scale", config.embedding_scale},
                                                   {"residual_scale", config.residual_scale},
                                                   {"logits_scale", config.logits_scale}};
  for (const auto& [name, scale] : scales)
    check(scale > 0 && scale < 1e6, std::string(name) + " must be above 0 and below 1000000");
  check(config.attention_scale >= 0 && config.attention_scale < 1e6, "attention_scale must be from 0 to below 1000000");
  for (const double cap : {config.attention_soft_cap, config.logits_soft_cap})
    check(cap >= 0 && cap < 1e6, "attention_soft_cap and logits_soft_cap must be from 0 to below 1000000");
}

void check_probability(const char* name, double value) {
  check(value >= 0 && value < 1, std::string(name) + " must be from 0 to below 1");
}

void check_adapter(const ModelConfig& config, const ModelParts& parts) {
  check(!config.quantization || !config.adapter || config.adapter->type != AdapterType::kDora,
        "magnitudes of adapters need a base that is not quantized");
  if (!config.adapter) return;
  const AdapterConfig& adapter = *config.adapter;
  check(adapter.rank >= 1 && adapter.rank <= kMaxAdapterRank,
        "adapter.rank must be from 1 to " + std::to_string(kMaxAdapterRank));
  check(adapter.scale > 0 && adapter.scale < 1e6, "adapter.scale must be above 0 and below 1000000");
  check(!adapter.target_modules.empty(), "adapter.target_modules must name a module");
  check_probability("adapter.dropout", adapter.dropout);
  check(adapter.dropout == 0 || adapter.type == AdapterType::kLora,
        "adapter.dropout must be 0 for adapters with magnitudes");
  // Rows of several leaves pass through an expert together.
  const bool in_experts = std::ranges::any_of(
      parts.parts, [&](const PartParams& part) { return part.per_expert() && adapter.targets(part.module_of(0, 0)); });
  check(adapter.dropout == 0 || !in_experts, "adapter.dropout must be 0 where an adapter is over experts");
}

}  // namespace

void validate(const ModelConfig& config) {
  check_sizes(config);
  check(config.intermediate_size % 2 == 0,
        "intermediate_size is " + std::to_string(config.intermediate_size) + "; it must be even");
  check_attention(config);
  check_positions(config);
  check_experts(config);
  check_scales(config);
  const ModelParts parts = model_parts(config);
  check_parts(config, parts);
  check_adapter(config, parts);
  check(config.norm_offset == 0 || config.norm_offset == 1, "norm_offset must be 0 or 1");
  check(config.norm_offset == 0 || config.norm == NormType::kRms, "norm_offset must be 0 with LayerNorm");
  check(config.norm_eps > 0 && config.norm_eps < 1, "norm_eps must be above 0 and below 1");
  check_probability("embedding_dropout", config.embedding_dropout);
  check_probability("attention_dropout", config.attention_dropout);
  check_probability("residual_dropout", config.residual_dropout);
  check(config.initializer_range > 0 && config.initializer_range < 1e3,
        "initializer_range must be above 0 and below 1000");
  check(config.residual_initializer_range > 0 && config.residual_initializer_range < 1e3,
        "residual_initializer_range must be above 0 and below 1000");
}

void validate_trained(const ModelConfig& config) {
  validate(config);
  check(!config.quantization || config.adapter,
        "quantization needs an adapter: a matrix that is trained is not quantized");
}

}  // namespace zerofleet
