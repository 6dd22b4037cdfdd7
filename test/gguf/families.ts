/** Small models that llama.cpp runs, too. */
import type { ModelConfig } from '../../contracts/index.js';
import { unsupportedModel } from '../../formats/gguf/architecture.js';
import { importConfig, MODEL_TYPES } from '../../job-document/index.js';
import { firstModel } from '../support/families.js';

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

/** Other models of families, with traits that their first models lack. */
export const VARIANTS: Record<string, ModelConfig> = {
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
  'glm, part of a head': { ...SIZES, model_type: 'glm', head_dim: 16 },
  'glm4 without biases, tied': {
    ...SIZES,
    model_type: 'glm4',
    head_dim: 16,
    attention_bias: false,
    tie_word_embeddings: true,
    partial_rotary_factor: 0.75,
  },
  smollm3: { ...SIZES, model_type: 'smollm3', num_hidden_layers: 4 },
  'qwen3, yarn': {
    ...SIZES,
    model_type: 'qwen3',
    head_dim: 32,
    rope_scaling: { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 32 },
  },
};

/** llama.cpp has no window for these. It computes the same where a text fits into the window. */
const WITHOUT_WINDOW: readonly string[] = ['mistral', 'phi3'];

/** The first model of each family that llama.cpp computes. */
export const FAMILIES = MODEL_TYPES.flatMap((type) => {
  const first = firstModel(type, SIZES);
  const config = WITHOUT_WINDOW.includes(type) ? { ...first, sliding_window: 100 } : first;
  const resolved = importConfig(config).config;
  return resolved && unsupportedModel(resolved) === null ? [[type, config]] : [];
});
