/** A small configuration of each family that llama.cpp runs. */
import type { ModelConfig } from '../../contracts/index.js';

const SIZES = {
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 256,
  max_position_embeddings: 128,
};
const LLAMA3 = { rope_type: 'llama3', factor: 4, low_freq_factor: 1, high_freq_factor: 4 };

export const FAMILIES: Record<string, ModelConfig> = {
  gpt2: {
    model_type: 'gpt2',
    n_embd: 64,
    n_layer: 2,
    n_head: 4,
    n_positions: 128,
    n_inner: 96,
    vocab_size: 256,
  },
  'llama with biases, rope_type llama3': {
    ...SIZES,
    model_type: 'llama',
    attention_bias: true,
    mlp_bias: true,
    rope_scaling: { ...LLAMA3, original_max_position_embeddings: 32 },
  },
  'llama, tied, rope_type linear, wide heads': {
    ...SIZES,
    model_type: 'llama',
    head_dim: 24,
    tie_word_embeddings: true,
    rope_scaling: { rope_type: 'linear', factor: 2 },
  },
  'mistral with a window': { ...SIZES, model_type: 'mistral', sliding_window: 64 },
  mixtral: { ...SIZES, model_type: 'mixtral', num_local_experts: 3 },
  'qwen2, yarn with another attention_factor': {
    ...SIZES,
    model_type: 'qwen2',
    rope_scaling: {
      rope_type: 'yarn',
      factor: 4,
      original_max_position_embeddings: 32,
      attention_factor: 1.3,
    },
  },
  olmo2: { ...SIZES, model_type: 'olmo2' },
  'gemma2 with a window and soft caps': {
    ...SIZES,
    model_type: 'gemma2',
    head_dim: 32,
    query_pre_attn_scalar: 32,
    sliding_window: 16,
    attn_logit_softcapping: 2,
    final_logit_softcapping: 3,
  },
  'gemma3 with a window, rope_type linear': {
    ...SIZES,
    model_type: 'gemma3_text',
    num_hidden_layers: 6,
    head_dim: 32,
    query_pre_attn_scalar: 32,
    sliding_window: 16,
    rope_local_base_freq: 5000,
    rope_scaling: { rope_type: 'linear', factor: 2 },
  },
  qwen3_moe: {
    ...SIZES,
    model_type: 'qwen3_moe',
    head_dim: 32,
    moe_intermediate_size: 64,
    num_experts: 3,
    num_experts_per_tok: 2,
    norm_topk_prob: true,
  },
  // The shortest prompt is longer than the original length: llama.cpp has the long factors everywhere.
  'phi3, longrope beyond the original length': {
    ...SIZES,
    model_type: 'phi3',
    partial_rotary_factor: 0.75,
    original_max_position_embeddings: 5,
    rope_scaling: {
      type: 'longrope',
      short_factor: [1, 1, 1, 1, 1, 1],
      long_factor: [1, 1.25, 1.5, 2, 3, 4],
    },
  },
  'phi3, tied': { ...SIZES, model_type: 'phi3', tie_word_embeddings: true, sliding_window: 100 },
  'glm4, yarn': {
    ...SIZES,
    model_type: 'glm4',
    head_dim: 24,
    rope_scaling: { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 32 },
  },
  'glm4 without biases, tied': {
    ...SIZES,
    model_type: 'glm4',
    head_dim: 16,
    attention_bias: false,
    tie_word_embeddings: true,
    partial_rotary_factor: 0.75,
  },
  smollm3: { ...SIZES, model_type: 'smollm3', num_hidden_layers: 4 },
  'granite with its factors': {
    ...SIZES,
    model_type: 'granite',
    attention_multiplier: 0.1,
    embedding_multiplier: 6,
    residual_multiplier: 0.5,
    logits_scaling: 3,
  },
  'qwen3, yarn': {
    ...SIZES,
    model_type: 'qwen3',
    head_dim: 32,
    rope_scaling: { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 32 },
  },
};
