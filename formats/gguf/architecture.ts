/** A model's architecture as GGUF metadata, and what llama.cpp cannot compute. */

import type { Architecture } from '../../contracts/architecture.js';
import type { ResolvedModelConfig } from '../../contracts/index.js';
import { architectureOf, familyOf } from '../../job-document/index.js';
import { bool, float32, type GgufMetadata, string, uint32 } from './file.js';

export function ggufArchitecture(config: Pick<ResolvedModelConfig, 'model_type'>): string {
  return familyOf(config).gguf.name;
}

/** Returns a name of a model for its file: for names with `phi3` llama.cpp expects the tokens of that model. */
export function ggufName(name: string): string {
  return name.replaceAll(/phi-?3/gi, 'Phi 3');
}

/** Scalings of rotary frequencies that llama.cpp has for all families. */
const SCALINGS: readonly Scaling['type'][] = ['none', 'linear', 'yarn'];

/** Returns why llama.cpp would compute something else than the model; null if it computes the same. */
export function unsupportedModel(config: ResolvedModelConfig): string | null {
  const model = architectureOf(config);
  const { scalings = [], unsupported } = familyOf(config).gguf;
  const { type, truncate } = model.rope_scaling;
  const problem = unsupported?.(model) ?? null;
  if (problem !== null) return problem;
  if (![...SCALINGS, ...scalings].includes(type))
    return `llama.cpp has no frequencies of the rope_type ${type} for ${config.model_type}`;
  return type === 'yarn' && !truncate
    ? 'llama.cpp rounds the bounds of yarn to whole dimensions (truncate true)'
    : null;
}

/** Returns the metadata under the name of the architecture. */
export function architectureMetadata(config: ResolvedModelConfig): GgufMetadata {
  const name = ggufArchitecture(config);
  const model = architectureOf(config);
  const entries: GgufMetadata = [
    ['block_count', uint32(model.num_hidden_layers)],
    ['context_length', uint32(isGemma(model) ? model.max_position_embeddings : contextLength(model))],
    ['embedding_length', uint32(model.hidden_size)],
    ['feed_forward_length', uint32(model.intermediate_size)],
    ['vocab_size', uint32(model.vocab_size)],
    ['attention.head_count', uint32(model.num_attention_heads)],
    ['attention.head_count_kv', uint32(model.num_key_value_heads)],
    [`attention.layer_norm_${model.norm === 'rms' ? 'rms_' : ''}epsilon`, float32(model.norm_eps)],
    ...(model.positions === 'rope' ? ropeMetadata(model) : []),
    ...experts(model),
    ...(isGemma(model) ? gemmaMetadata(model) : scales(model)),
    ...(name === 'gptneox' ? ([['use_parallel_residual', bool(model.parallel_residual)]] as const) : []),
  ];
  return entries.map(([key, value]) => [`${name}.${key}`, value]);
}

/** llama.cpp has the windows and the scale of the embeddings of these. */
function isGemma({ norm_offset }: Architecture): boolean {
  return norm_offset === 1;
}

function gemmaMetadata(model: Architecture): GgufMetadata {
  const { layer_windows, rope_theta, layer_rope, local_rope_theta, attention_soft_cap, logits_soft_cap } =
    model;
  return [
    ['attention.sliding_window', uint32(Math.max(...layer_windows))],
    ['rope.freq_base_swa', float32(layer_rope.length === 0 ? rope_theta : local_rope_theta)],
    ...(attention_soft_cap > 0 ? ([['attn_logit_softcapping', float32(attention_soft_cap)]] as const) : []),
    ...(logits_soft_cap > 0 ? ([['final_logit_softcapping', float32(logits_soft_cap)]] as const) : []),
  ];
}

/** llama.cpp attends to all tokens, which is the same up to the length of the smallest window. */
function contextLength({ max_position_embeddings, layer_windows }: Architecture): number {
  return Math.min(max_position_embeddings, ...layer_windows.filter((window) => window > 0));
}

/** llama.cpp divides logits by their scale. */
function scales(model: Architecture): GgufMetadata {
  const given: [string, number, number][] = [
    ['attention.scale', model.attention_scale, 0],
    ['embedding_scale', model.embedding_scale, 1],
    ['residual_scale', model.residual_scale, 1],
    ['logit_scale', 1 / model.logits_scale, 1],
  ];
  return given.filter(([, scale, plain]) => scale !== plain).map(([key, scale]) => [key, float32(scale)]);
}

function experts(model: Architecture): GgufMetadata {
  const { num_experts, experts_per_token, intermediate_size, shared_expert_size } = model;
  if (num_experts === 0) return [];
  return [
    ['expert_count', uint32(num_experts)],
    ['expert_used_count', uint32(experts_per_token)],
    ['expert_feed_forward_length', uint32(intermediate_size)],
    ...(shared_expert_size > 0
      ? ([['expert_shared_feed_forward_length', uint32(shared_expert_size)]] as const)
      : []),
  ];
}

function ropeMetadata({ head_dim, rotary_dim, rope_theta, rope_scaling }: Architecture): GgufMetadata {
  return [
    ['attention.key_length', uint32(head_dim)],
    ['attention.value_length', uint32(head_dim)],
    ['rope.dimension_count', uint32(rotary_dim || head_dim)],
    ['rope.freq_base', float32(rope_theta)],
    ...scalingMetadata(rope_scaling),
  ];
}

type Scaling = Architecture['rope_scaling'];

/** `llama3` has no metadata but a tensor; `longrope` has its factors in two. */
function scalingMetadata(scaling: Scaling): GgufMetadata {
  const { type, factor } = scaling;
  if (type === 'none' || type === 'llama3') return [];
  const original: GgufMetadata[number] = [
    'rope.scaling.original_context_length',
    uint32(scaling.original_max_position_embeddings),
  ];
  if (type === 'longrope')
    return [original, ['rope.scaling.attn_factor', float32(longropeAttentionFactor(scaling))]];
  const common: GgufMetadata = [
    ['rope.scaling.type', string(type)],
    ['rope.scaling.factor', float32(factor)],
  ];
  if (type === 'linear') return common;
  return [
    ...common,
    original,
    ['rope.scaling.yarn_beta_fast', float32(scaling.beta_fast)],
    ['rope.scaling.yarn_beta_slow', float32(scaling.beta_slow)],
    // llama.cpp multiplies the default by this factor.
    ['rope.scaling.attn_factor', float32(attentionFactor(scaling) / magnitude(factor, 1))],
  ];
}

function attentionFactor({ factor, attention_factor, mscale, mscale_all_dim }: Scaling): number {
  if (attention_factor > 0) return attention_factor;
  if (mscale > 0 && mscale_all_dim > 0) return magnitude(factor, mscale) / magnitude(factor, mscale_all_dim);
  return magnitude(factor, 1);
}

/** LongRoPE's factor of cosines and sines (Ding and others 2024). */
function longropeAttentionFactor(scaling: Scaling): number {
  const { factor, attention_factor, original_max_position_embeddings: original } = scaling;
  if (attention_factor > 0) return attention_factor;
  return factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(original));
}

/** YaRN's factor of cosines and sines (Peng and others 2023, section 3.4). */
function magnitude(factor: number, mscale: number): number {
  return factor <= 1 ? 1 : 0.1 * mscale * Math.log(factor) + 1;
}

/** Returns the tensors with divisors of the rotary frequencies, one for each pair of rotated elements. */
export function ropeTensors(config: ResolvedModelConfig): Record<string, Float32Array> {
  const model = architectureOf(config);
  const { type, short_factor, long_factor } = model.rope_scaling;
  if (type === 'llama3') return { 'rope_freqs.weight': llama3Factors(model) };
  if (type !== 'longrope') return {};
  // llama.cpp has the long ones if its context exceeds the original one.
  return {
    'rope_factors_long.weight': Float32Array.from(long_factor),
    'rope_factors_short.weight': Float32Array.from(short_factor),
  };
}

function llama3Factors({ head_dim, rope_theta, rope_scaling }: Architecture): Float32Array {
  const { factor, low_freq_factor, high_freq_factor, original_max_position_embeddings } = rope_scaling;
  return Float32Array.from({ length: head_dim / 2 }, (_, i) => {
    const wavelength = 2 * Math.PI * rope_theta ** ((2 * i) / head_dim);
    const rotations = original_max_position_embeddings / wavelength;
    if (rotations > high_freq_factor) return 1;
    if (rotations < low_freq_factor) return factor;
    const smooth = (rotations - low_freq_factor) / (high_freq_factor - low_freq_factor);
    return 1 / ((1 - smooth) / factor + smooth);
  });
}
