/** Configurations of tests of the model families. */
import type { Architecture } from '../../contracts/architecture.js';
import { architectureOf } from '../model/families/families.js';
import { importConfig } from '../model/import.js';

/** Returns the architecture of a valid configuration. */
export function architecture(document: Record<string, unknown>): Architecture {
  const { config, errors } = importConfig(document);
  if (config === null || errors.length > 0) throw new Error(JSON.stringify(errors));
  return architectureOf(config);
}

/** The same window in each layer. */
export const ALL = (window: number, layers: number) => Array.from({ length: layers }, () => window);

/** Fields with the same value in most architectures. */
export const PLAIN = {
  naming: 'llama',
  norm: 'rms',
  positions: 'rope',
  rope_scaling: { type: 'none', factor: 1, attention_factor: 0 },
  qkv_bias: false,
  output_bias: false,
  mlp_bias: false,
  qk_norm: false,
  mlp: 'swiglu',
  num_experts: 0,
  experts_per_token: 0,
  router_aux_loss_coef: 0,
  tie_word_embeddings: false,
  embedding_dropout: 0,
  attention_dropout: 0,
  residual_dropout: 0,
  initializer_range: 0.02,
  residual_initializer_range: 0.02,
};

export const SMALL = {
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 256,
};
