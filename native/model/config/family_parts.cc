// Generated from PARTS and the families of job-document/model by `npm run generate`; change them there.
// clang-format off
#include "core/error.h"
#include "model/config/model_parts.h"

namespace zerofleet {

ModelParts model_parts(const ModelConfig& c) {
  using enum ModelPart;
  const double std = c.initializer_range, residual_std = c.residual_initializer_range;
  if (c.naming == "gpt2") {
    return {true, {
      {kEmbed, PartKind::kEmbedding, "transformer.wte", c.hidden_size, c.vocab_size, false, std, true},
      {kPositions, PartKind::kEmbedding, "transformer.wpe", c.hidden_size, c.max_position_embeddings, false, std, true},
      {kInputNorm, PartKind::kNorm, "transformer.h.{}.ln_1", 0, c.hidden_size, c.norm_bias(), std, true},
      {kQkv, PartKind::kLinear, "transformer.h.{}.attn.c_attn", c.hidden_size, c.qkv_size(), c.qkv_bias, std, true},
      {kOutput, PartKind::kLinear, "transformer.h.{}.attn.c_proj", c.query_size(), c.hidden_size, c.output_bias, residual_std, true},
      {kPostAttentionNorm, PartKind::kNorm, "transformer.h.{}.ln_2", 0, c.hidden_size, c.norm_bias(), std, true},
      {kUp, PartKind::kLinear, "transformer.h.{}.mlp.c_fc", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kDown, PartKind::kLinear, "transformer.h.{}.mlp.c_proj", c.intermediate_size, c.hidden_size, c.mlp_bias, residual_std, true},
      {kNorm, PartKind::kNorm, "transformer.ln_f", 0, c.hidden_size, c.norm_bias(), std, true},
      {kHead, PartKind::kEmbedding, "lm_head", c.hidden_size, c.vocab_size, false, std, c.own_head()},
    }};
  }
  if (c.naming == "llama") {
    return {false, {
      {kEmbed, PartKind::kEmbedding, "model.embed_tokens", c.hidden_size, c.vocab_size, false, std, true},
      {kInputNorm, PartKind::kNorm, "model.layers.{}.input_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kQuery, PartKind::kLinear, "model.layers.{}.self_attn.q_proj", c.hidden_size, c.query_size(), c.qkv_bias, std, true},
      {kKey, PartKind::kLinear, "model.layers.{}.self_attn.k_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kValue, PartKind::kLinear, "model.layers.{}.self_attn.v_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kQueryNorm, PartKind::kNorm, "model.layers.{}.self_attn.q_norm", 0, c.query_norm_size(), false, std, c.qk_norm},
      {kKeyNorm, PartKind::kNorm, "model.layers.{}.self_attn.k_norm", 0, c.key_norm_size(), false, std, c.qk_norm},
      {kOutput, PartKind::kLinear, "model.layers.{}.self_attn.o_proj", c.query_size(), c.hidden_size, c.output_bias, residual_std, true},
      {kPostAttentionNorm, PartKind::kNorm, "model.layers.{}.post_attention_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kGate, PartKind::kLinear, "model.layers.{}.mlp.gate_proj", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kUp, PartKind::kLinear, "model.layers.{}.mlp.up_proj", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kDown, PartKind::kLinear, "model.layers.{}.mlp.down_proj", c.intermediate_size, c.hidden_size, c.mlp_bias, residual_std, true},
      {kNorm, PartKind::kNorm, "model.norm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kHead, PartKind::kEmbedding, "lm_head", c.hidden_size, c.vocab_size, false, std, c.own_head()},
    }};
  }
  if (c.naming == "mixtral") {
    return {false, {
      {kEmbed, PartKind::kEmbedding, "model.embed_tokens", c.hidden_size, c.vocab_size, false, std, true},
      {kInputNorm, PartKind::kNorm, "model.layers.{}.input_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kQuery, PartKind::kLinear, "model.layers.{}.self_attn.q_proj", c.hidden_size, c.query_size(), c.qkv_bias, std, true},
      {kKey, PartKind::kLinear, "model.layers.{}.self_attn.k_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kValue, PartKind::kLinear, "model.layers.{}.self_attn.v_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kQueryNorm, PartKind::kNorm, "model.layers.{}.self_attn.q_norm", 0, c.query_norm_size(), false, std, c.qk_norm},
      {kKeyNorm, PartKind::kNorm, "model.layers.{}.self_attn.k_norm", 0, c.key_norm_size(), false, std, c.qk_norm},
      {kOutput, PartKind::kLinear, "model.layers.{}.self_attn.o_proj", c.query_size(), c.hidden_size, c.output_bias, residual_std, true},
      {kPostAttentionNorm, PartKind::kNorm, "model.layers.{}.post_attention_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kRouter, PartKind::kRouter, "model.layers.{}.block_sparse_moe.gate", c.hidden_size, c.num_experts, false, std, true},
      {kGate, PartKind::kLinear, "model.layers.{}.block_sparse_moe.experts.{}.w1", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kDown, PartKind::kLinear, "model.layers.{}.block_sparse_moe.experts.{}.w2", c.intermediate_size, c.hidden_size, c.mlp_bias, residual_std, true},
      {kUp, PartKind::kLinear, "model.layers.{}.block_sparse_moe.experts.{}.w3", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kNorm, PartKind::kNorm, "model.norm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kHead, PartKind::kEmbedding, "lm_head", c.hidden_size, c.vocab_size, false, std, c.own_head()},
    }};
  }
  if (c.naming == "olmo2") {
    return {false, {
      {kEmbed, PartKind::kEmbedding, "model.embed_tokens", c.hidden_size, c.vocab_size, false, std, true},
      {kQuery, PartKind::kLinear, "model.layers.{}.self_attn.q_proj", c.hidden_size, c.query_size(), c.qkv_bias, std, true},
      {kKey, PartKind::kLinear, "model.layers.{}.self_attn.k_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kValue, PartKind::kLinear, "model.layers.{}.self_attn.v_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kQueryNorm, PartKind::kNorm, "model.layers.{}.self_attn.q_norm", 0, c.query_norm_size(), false, std, c.qk_norm},
      {kKeyNorm, PartKind::kNorm, "model.layers.{}.self_attn.k_norm", 0, c.key_norm_size(), false, std, c.qk_norm},
      {kOutput, PartKind::kLinear, "model.layers.{}.self_attn.o_proj", c.query_size(), c.hidden_size, c.output_bias, residual_std, true},
      {kAttentionOutputNorm, PartKind::kNorm, "model.layers.{}.post_attention_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kGate, PartKind::kLinear, "model.layers.{}.mlp.gate_proj", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kUp, PartKind::kLinear, "model.layers.{}.mlp.up_proj", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kDown, PartKind::kLinear, "model.layers.{}.mlp.down_proj", c.intermediate_size, c.hidden_size, c.mlp_bias, residual_std, true},
      {kMlpOutputNorm, PartKind::kNorm, "model.layers.{}.post_feedforward_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kNorm, PartKind::kNorm, "model.norm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kHead, PartKind::kEmbedding, "lm_head", c.hidden_size, c.vocab_size, false, std, c.own_head()},
    }};
  }
  if (c.naming == "qwen3_moe") {
    return {false, {
      {kEmbed, PartKind::kEmbedding, "model.embed_tokens", c.hidden_size, c.vocab_size, false, std, true},
      {kInputNorm, PartKind::kNorm, "model.layers.{}.input_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kQuery, PartKind::kLinear, "model.layers.{}.self_attn.q_proj", c.hidden_size, c.query_size(), c.qkv_bias, std, true},
      {kKey, PartKind::kLinear, "model.layers.{}.self_attn.k_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kValue, PartKind::kLinear, "model.layers.{}.self_attn.v_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kQueryNorm, PartKind::kNorm, "model.layers.{}.self_attn.q_norm", 0, c.query_norm_size(), false, std, c.qk_norm},
      {kKeyNorm, PartKind::kNorm, "model.layers.{}.self_attn.k_norm", 0, c.key_norm_size(), false, std, c.qk_norm},
      {kOutput, PartKind::kLinear, "model.layers.{}.self_attn.o_proj", c.query_size(), c.hidden_size, c.output_bias, residual_std, true},
      {kPostAttentionNorm, PartKind::kNorm, "model.layers.{}.post_attention_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kRouter, PartKind::kRouter, "model.layers.{}.mlp.gate", c.hidden_size, c.num_experts, false, std, true},
      {kGate, PartKind::kLinear, "model.layers.{}.mlp.experts.{}.gate_proj", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kUp, PartKind::kLinear, "model.layers.{}.mlp.experts.{}.up_proj", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kDown, PartKind::kLinear, "model.layers.{}.mlp.experts.{}.down_proj", c.intermediate_size, c.hidden_size, c.mlp_bias, residual_std, true},
      {kNorm, PartKind::kNorm, "model.norm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kHead, PartKind::kEmbedding, "lm_head", c.hidden_size, c.vocab_size, false, std, c.own_head()},
    }};
  }
  if (c.naming == "gemma") {
    return {false, {
      {kEmbed, PartKind::kEmbedding, "model.embed_tokens", c.hidden_size, c.vocab_size, false, std, true},
      {kInputNorm, PartKind::kNorm, "model.layers.{}.input_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kQuery, PartKind::kLinear, "model.layers.{}.self_attn.q_proj", c.hidden_size, c.query_size(), c.qkv_bias, std, true},
      {kKey, PartKind::kLinear, "model.layers.{}.self_attn.k_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kValue, PartKind::kLinear, "model.layers.{}.self_attn.v_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kQueryNorm, PartKind::kNorm, "model.layers.{}.self_attn.q_norm", 0, c.query_norm_size(), false, std, c.qk_norm},
      {kKeyNorm, PartKind::kNorm, "model.layers.{}.self_attn.k_norm", 0, c.key_norm_size(), false, std, c.qk_norm},
      {kOutput, PartKind::kLinear, "model.layers.{}.self_attn.o_proj", c.query_size(), c.hidden_size, c.output_bias, residual_std, true},
      {kAttentionOutputNorm, PartKind::kNorm, "model.layers.{}.post_attention_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kPostAttentionNorm, PartKind::kNorm, "model.layers.{}.pre_feedforward_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kGate, PartKind::kLinear, "model.layers.{}.mlp.gate_proj", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kUp, PartKind::kLinear, "model.layers.{}.mlp.up_proj", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kDown, PartKind::kLinear, "model.layers.{}.mlp.down_proj", c.intermediate_size, c.hidden_size, c.mlp_bias, residual_std, true},
      {kMlpOutputNorm, PartKind::kNorm, "model.layers.{}.post_feedforward_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kNorm, PartKind::kNorm, "model.norm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kHead, PartKind::kEmbedding, "lm_head", c.hidden_size, c.vocab_size, false, std, c.own_head()},
    }};
  }
  if (c.naming == "phi3") {
    return {false, {
      {kEmbed, PartKind::kEmbedding, "model.embed_tokens", c.hidden_size, c.vocab_size, false, std, true},
      {kInputNorm, PartKind::kNorm, "model.layers.{}.input_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kQkv, PartKind::kLinear, "model.layers.{}.self_attn.qkv_proj", c.hidden_size, c.qkv_size(), c.qkv_bias, std, true},
      {kOutput, PartKind::kLinear, "model.layers.{}.self_attn.o_proj", c.query_size(), c.hidden_size, c.output_bias, residual_std, true},
      {kPostAttentionNorm, PartKind::kNorm, "model.layers.{}.post_attention_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kGateUp, PartKind::kLinear, "model.layers.{}.mlp.gate_up_proj", c.hidden_size, c.gate_up_size(), c.mlp_bias, std, true},
      {kDown, PartKind::kLinear, "model.layers.{}.mlp.down_proj", c.intermediate_size, c.hidden_size, c.mlp_bias, residual_std, true},
      {kNorm, PartKind::kNorm, "model.norm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kHead, PartKind::kEmbedding, "lm_head", c.hidden_size, c.vocab_size, false, std, c.own_head()},
    }};
  }
  if (c.naming == "glm4") {
    return {false, {
      {kEmbed, PartKind::kEmbedding, "model.embed_tokens", c.hidden_size, c.vocab_size, false, std, true},
      {kInputNorm, PartKind::kNorm, "model.layers.{}.input_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kQuery, PartKind::kLinear, "model.layers.{}.self_attn.q_proj", c.hidden_size, c.query_size(), c.qkv_bias, std, true},
      {kKey, PartKind::kLinear, "model.layers.{}.self_attn.k_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kValue, PartKind::kLinear, "model.layers.{}.self_attn.v_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kOutput, PartKind::kLinear, "model.layers.{}.self_attn.o_proj", c.query_size(), c.hidden_size, c.output_bias, residual_std, true},
      {kAttentionOutputNorm, PartKind::kNorm, "model.layers.{}.post_self_attn_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kPostAttentionNorm, PartKind::kNorm, "model.layers.{}.post_attention_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kGateUp, PartKind::kLinear, "model.layers.{}.mlp.gate_up_proj", c.hidden_size, c.gate_up_size(), c.mlp_bias, std, true},
      {kDown, PartKind::kLinear, "model.layers.{}.mlp.down_proj", c.intermediate_size, c.hidden_size, c.mlp_bias, residual_std, true},
      {kMlpOutputNorm, PartKind::kNorm, "model.layers.{}.post_mlp_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kNorm, PartKind::kNorm, "model.norm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kHead, PartKind::kEmbedding, "lm_head", c.hidden_size, c.vocab_size, false, std, c.own_head()},
    }};
  }
  if (c.naming == "gpt_neox") {
    return {false, {
      {kEmbed, PartKind::kEmbedding, "gpt_neox.embed_in", c.hidden_size, c.vocab_size, false, std, true},
      {kInputNorm, PartKind::kNorm, "gpt_neox.layers.{}.input_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kQkv, PartKind::kLinear, "gpt_neox.layers.{}.attention.query_key_value", c.hidden_size, c.qkv_size(), c.qkv_bias, std, true},
      {kOutput, PartKind::kLinear, "gpt_neox.layers.{}.attention.dense", c.query_size(), c.hidden_size, c.output_bias, residual_std, true},
      {kPostAttentionNorm, PartKind::kNorm, "gpt_neox.layers.{}.post_attention_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kUp, PartKind::kLinear, "gpt_neox.layers.{}.mlp.dense_h_to_4h", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kDown, PartKind::kLinear, "gpt_neox.layers.{}.mlp.dense_4h_to_h", c.intermediate_size, c.hidden_size, c.mlp_bias, residual_std, true},
      {kNorm, PartKind::kNorm, "gpt_neox.final_layer_norm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kHead, PartKind::kEmbedding, "embed_out", c.hidden_size, c.vocab_size, false, std, c.own_head()},
    }};
  }
  if (c.naming == "glm") {
    return {false, {
      {kEmbed, PartKind::kEmbedding, "model.embed_tokens", c.hidden_size, c.vocab_size, false, std, true},
      {kInputNorm, PartKind::kNorm, "model.layers.{}.input_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kQuery, PartKind::kLinear, "model.layers.{}.self_attn.q_proj", c.hidden_size, c.query_size(), c.qkv_bias, std, true},
      {kKey, PartKind::kLinear, "model.layers.{}.self_attn.k_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kValue, PartKind::kLinear, "model.layers.{}.self_attn.v_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kOutput, PartKind::kLinear, "model.layers.{}.self_attn.o_proj", c.query_size(), c.hidden_size, c.output_bias, residual_std, true},
      {kPostAttentionNorm, PartKind::kNorm, "model.layers.{}.post_attention_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kGateUp, PartKind::kLinear, "model.layers.{}.mlp.gate_up_proj", c.hidden_size, c.gate_up_size(), c.mlp_bias, std, true},
      {kDown, PartKind::kLinear, "model.layers.{}.mlp.down_proj", c.intermediate_size, c.hidden_size, c.mlp_bias, residual_std, true},
      {kNorm, PartKind::kNorm, "model.norm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kHead, PartKind::kEmbedding, "lm_head", c.hidden_size, c.vocab_size, false, std, c.own_head()},
    }};
  }
  if (c.naming == "qwen2_moe") {
    return {false, {
      {kEmbed, PartKind::kEmbedding, "model.embed_tokens", c.hidden_size, c.vocab_size, false, std, true},
      {kInputNorm, PartKind::kNorm, "model.layers.{}.input_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kQuery, PartKind::kLinear, "model.layers.{}.self_attn.q_proj", c.hidden_size, c.query_size(), c.qkv_bias, std, true},
      {kKey, PartKind::kLinear, "model.layers.{}.self_attn.k_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kValue, PartKind::kLinear, "model.layers.{}.self_attn.v_proj", c.hidden_size, c.key_value_size(), c.qkv_bias, std, true},
      {kQueryNorm, PartKind::kNorm, "model.layers.{}.self_attn.q_norm", 0, c.query_norm_size(), false, std, c.qk_norm},
      {kKeyNorm, PartKind::kNorm, "model.layers.{}.self_attn.k_norm", 0, c.key_norm_size(), false, std, c.qk_norm},
      {kOutput, PartKind::kLinear, "model.layers.{}.self_attn.o_proj", c.query_size(), c.hidden_size, c.output_bias, residual_std, true},
      {kPostAttentionNorm, PartKind::kNorm, "model.layers.{}.post_attention_layernorm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kSharedGate, PartKind::kLinear, "model.layers.{}.mlp.shared_expert.gate_proj", c.hidden_size, c.shared_expert_size, false, std, true},
      {kSharedUp, PartKind::kLinear, "model.layers.{}.mlp.shared_expert.up_proj", c.hidden_size, c.shared_expert_size, false, std, true},
      {kSharedDown, PartKind::kLinear, "model.layers.{}.mlp.shared_expert.down_proj", c.shared_expert_size, c.hidden_size, false, residual_std, true},
      {kSharedRouter, PartKind::kRouter, "model.layers.{}.mlp.shared_expert_gate", c.hidden_size, c.shared_logits(), false, std, true},
      {kRouter, PartKind::kRouter, "model.layers.{}.mlp.gate", c.hidden_size, c.num_experts, false, std, true},
      {kGate, PartKind::kLinear, "model.layers.{}.mlp.experts.{}.gate_proj", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kUp, PartKind::kLinear, "model.layers.{}.mlp.experts.{}.up_proj", c.hidden_size, c.intermediate_size, c.mlp_bias, std, true},
      {kDown, PartKind::kLinear, "model.layers.{}.mlp.experts.{}.down_proj", c.intermediate_size, c.hidden_size, c.mlp_bias, residual_std, true},
      {kNorm, PartKind::kNorm, "model.norm", 0, c.hidden_size, c.norm_bias(), std, true},
      {kHead, PartKind::kEmbedding, "lm_head", c.hidden_size, c.vocab_size, false, std, c.own_head()},
    }};
  }
  throw Error("invalid_model_config", "naming: no family names its parameters as " + c.naming);
}

}  // namespace zerofleet
