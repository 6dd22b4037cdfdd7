import type { components } from './generated/openapi.js';
import type { ResolvedModelConfig } from './index.js';

export type PresetName = components['schemas']['PresetName'];

/** Smallest useful model, about 3.3 million parameters: one byte is one token. */
const LLAMA_TINY: ResolvedModelConfig = {
  model_type: 'llama',
  hidden_size: 256,
  intermediate_size: 704,
  num_hidden_layers: 4,
  num_attention_heads: 8,
  num_key_value_heads: 8,
  head_dim: 32,
  vocab_size: 256,
  max_position_embeddings: 2048,
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
  rope_scaling: null,
  tie_word_embeddings: false,
  initializer_range: 0.02,
  hidden_act: 'silu',
  attention_dropout: 0,
  attention_bias: false,
  mlp_bias: false,
};

/** About 56 million parameters, with grouped-query attention. */
const LLAMA_SMALL: ResolvedModelConfig = {
  ...LLAMA_TINY,
  hidden_size: 512,
  intermediate_size: 1408,
  num_hidden_layers: 8,
  num_key_value_heads: 4,
  head_dim: 64,
  vocab_size: 32_000,
};

/** The configurations behind `model.preset`. */
export const presets: Readonly<Record<PresetName, Readonly<ResolvedModelConfig>>> = {
  'llama-tiny': LLAMA_TINY,
  'llama-small': LLAMA_SMALL,
};
