import { frozen } from '../contracts/frozen.js';
import type { components } from '../contracts/generated/openapi.js';
import type { ResolvedModelConfig } from '../contracts/index.js';

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

/** Smallest GPT-2, 124 million parameters, as it is trained today: without dropout. */
const GPT2: ResolvedModelConfig = {
  model_type: 'gpt2',
  vocab_size: 50_257,
  n_positions: 1024,
  n_embd: 768,
  n_layer: 12,
  n_head: 12,
  n_inner: 3072,
  activation_function: 'gelu_new',
  resid_pdrop: 0,
  embd_pdrop: 0,
  attn_pdrop: 0,
  layer_norm_epsilon: 1e-5,
  initializer_range: 0.02,
  tie_word_embeddings: true,
};

/**
 * Small mixture of experts, about 7.2 million parameters of which 4.1 million are active for a token; one
 * byte is one token.
 */
const MIXTRAL_TINY: ResolvedModelConfig = {
  model_type: 'mixtral',
  hidden_size: 256,
  intermediate_size: 512,
  num_hidden_layers: 4,
  num_attention_heads: 8,
  num_key_value_heads: 4,
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
  sliding_window: null,
  num_local_experts: 4,
  num_experts_per_tok: 2,
  output_router_logits: true,
  router_aux_loss_coef: 0.02,
};

/** Configurations of `model.preset`. */
export const presets: Readonly<Record<PresetName, Readonly<ResolvedModelConfig>>> = frozen({
  'llama-tiny': LLAMA_TINY,
  'llama-small': LLAMA_SMALL,
  gpt2: GPT2,
  'mixtral-tiny': MIXTRAL_TINY,
});
