/** Common part of the families with RMSNorm, rotary positions and SwiGLU: Llama and its successors. */
import { type Architecture, LLAMA_TRAITS } from '../../../contracts/architecture.js';
import type { ParamNames } from '../parts.js';
import type { ConfigReader } from '../reader.js';
import { type RopeConfig, readRope, scalingParams } from '../rope.js';
import type { ConfigOf } from './family.js';
import { LIMITS } from './limits.js';

/** Defaults of transformers for a family's `config.json`. */
interface DecoderDefaults {
  max_position_embeddings: number;
  rms_norm_eps: number;
  rope_theta: number;
  /** Default: `num_attention_heads`. */
  num_key_value_heads?: number;
  /** Default: `hidden_size / num_attention_heads`. */
  head_dim?: number;
  /** Default: false. */
  tie_word_embeddings?: boolean;
}

/** Fields of all these families, and of those with another activation. */
type DecoderConfig = Omit<ConfigOf<'llama'>, 'model_type' | 'attention_bias' | 'mlp_bias'>;
type DecoderSizes = Omit<DecoderConfig, 'hidden_act' | keyof RopeConfig>;

const WHY_ACTIVATION = 'The MLP of this family is SwiGLU.';

/** Reads the fields of a family with another activation. */
export function readDecoderSizes<Rope extends { rope_theta: number }>(
  reader: ConfigReader,
  defaults: DecoderDefaults,
  rope: (maxPositions: number, headDim: number) => Rope,
): DecoderSizes & Rope {
  const hiddenSize = reader.integer('hidden_size', LIMITS.hidden);
  const numAttentionHeads = reader.integer('num_attention_heads', LIMITS.heads);
  const maxPositionEmbeddings = reader.integer('max_position_embeddings', {
    ...LIMITS.positions,
    fallback: defaults.max_position_embeddings,
  });
  const ofHeads = { fallback: numAttentionHeads, fallbackText: 'num_attention_heads' };
  // transformers: an absent field has the family's default, null means the number of query heads.
  const numKeyValueHeads =
    reader.integerOrNull('num_key_value_heads', {
      ...LIMITS.heads,
      ...(defaults.num_key_value_heads === undefined ? ofHeads : { fallback: defaults.num_key_value_heads }),
    }) ?? numAttentionHeads;
  const headDim = readHeadDim(reader, hiddenSize, numAttentionHeads, defaults.head_dim);
  return {
    hidden_size: hiddenSize,
    intermediate_size: reader.integer('intermediate_size', LIMITS.inner),
    num_hidden_layers: reader.integer('num_hidden_layers', LIMITS.layers),
    num_attention_heads: numAttentionHeads,
    num_key_value_heads: numKeyValueHeads,
    head_dim: headDim,
    vocab_size: reader.integer('vocab_size', LIMITS.vocab),
    max_position_embeddings: maxPositionEmbeddings,
    rms_norm_eps: reader.number('rms_norm_eps', { ...LIMITS.eps, fallback: defaults.rms_norm_eps }),
    ...rope(maxPositionEmbeddings, headDim),
    tie_word_embeddings: reader.flag('tie_word_embeddings', defaults.tie_word_embeddings ?? false),
    initializer_range: reader.number('initializer_range', { ...LIMITS.deviation, fallback: 0.02 }),
    attention_dropout: reader.number('attention_dropout', { ...LIMITS.dropout, fallback: 0 }),
  };
}

export function readDecoder(reader: ConfigReader, defaults: DecoderDefaults): DecoderConfig {
  return readDecoderWith(reader, defaults, (maxPositions, headDim) =>
    readRope(reader, defaults.rope_theta, maxPositions, headDim),
  );
}

/** @param rope reads rotary positions of a family with fields of its own */
export function readDecoderWith<Rope extends { rope_theta: number }>(
  reader: ConfigReader,
  defaults: DecoderDefaults,
  rope: (maxPositions: number, headDim: number) => Rope,
): DecoderSizes & Rope & Pick<DecoderConfig, 'hidden_act'> {
  return {
    ...readDecoderSizes(reader, defaults, rope),
    hidden_act: reader.choice('hidden_act', {
      values: { silu: 'silu', swish: 'silu' } as const,
      fallback: 'silu',
      why: WHY_ACTIVATION,
    }),
  };
}

/** Reads whether projections of attention and of the MLP have biases. */
export function readBiases(reader: ConfigReader): { attention_bias: boolean; mlp_bias: boolean } {
  return {
    attention_bias: reader.flag('attention_bias', false),
    mlp_bias: reader.flag('mlp_bias', false),
  };
}

function readHeadDim(
  reader: ConfigReader,
  hidden: number,
  heads: number,
  familyDefault: number | undefined,
): number {
  const isDerived = familyDefault === undefined && !reader.has('head_dim');
  if (isDerived && hidden % heads !== 0 && reader.isSound('hidden_size', 'num_attention_heads')) {
    reader.fail(
      'hidden_size',
      'hidden_size_not_divisible',
      `hidden_size ${hidden} is not a multiple of num_attention_heads ${heads}`,
      // Twice the heads, because the width of a head must be even.
      String(nearestMultiple(hidden, 2 * heads)),
    );
    return LIMITS.headDim.min;
  }
  return reader.integer('head_dim', {
    ...LIMITS.headDim,
    ...(familyDefault === undefined
      ? { fallback: Math.floor(hidden / heads), fallbackText: 'hidden_size / num_attention_heads' }
      : { fallback: familyDefault }),
  });
}

export function nearestMultiple(value: number, factor: number): number {
  return Math.max(factor, Math.round(value / factor) * factor);
}

/** Names of Llama's parameters, which its successors have too. */
export const DECODER_PARAMS = {
  naming: LLAMA_TRAITS.naming,
  in_first: false,
  modules: {
    embed: 'model.embed_tokens',
    input_norm: 'model.layers.{}.input_layernorm',
    query: 'model.layers.{}.self_attn.q_proj',
    key: 'model.layers.{}.self_attn.k_proj',
    value: 'model.layers.{}.self_attn.v_proj',
    query_norm: 'model.layers.{}.self_attn.q_norm',
    key_norm: 'model.layers.{}.self_attn.k_norm',
    output: 'model.layers.{}.self_attn.o_proj',
    post_attention_norm: 'model.layers.{}.post_attention_layernorm',
    gate: 'model.layers.{}.mlp.gate_proj',
    up: 'model.layers.{}.mlp.up_proj',
    down: 'model.layers.{}.mlp.down_proj',
    norm: 'model.norm',
    head: 'lm_head',
  },
} satisfies ParamNames;

/**
 * Returns the architecture of a dense decoder with Llama's traits and the biases of its configuration; families
 * override the differences.
 */
export function decoderArchitecture(
  config: DecoderSizes & RopeConfig & { attention_bias?: boolean; mlp_bias?: boolean },
): Architecture {
  const { attention_bias = false, mlp_bias = false } = config;
  return {
    ...LLAMA_TRAITS,
    hidden_size: config.hidden_size,
    intermediate_size: config.intermediate_size,
    num_hidden_layers: config.num_hidden_layers,
    num_attention_heads: config.num_attention_heads,
    num_key_value_heads: config.num_key_value_heads,
    head_dim: config.head_dim,
    vocab_size: config.vocab_size,
    max_position_embeddings: config.max_position_embeddings,
    norm_eps: config.rms_norm_eps,
    rope_theta: config.rope_theta,
    rope_scaling: scalingParams(config.rope_scaling),
    qkv_bias: attention_bias,
    output_bias: attention_bias,
    mlp_bias,
    layer_windows: everyLayer(config, 0),
    tie_word_embeddings: config.tie_word_embeddings,
    attention_dropout: config.attention_dropout,
    initializer_range: config.initializer_range,
    residual_initializer_range: config.initializer_range,
  };
}

export function everyLayer({ num_hidden_layers }: { num_hidden_layers: number }, window: number): number[] {
  return new Array<number>(num_hidden_layers).fill(window);
}
