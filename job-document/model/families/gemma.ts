/** Common part of Gemma 2 and 3. */
import type { Architecture } from '../../../contracts/architecture.js';
import type { ConfigReader } from '../reader.js';
import type { RopeConfig } from '../rope.js';
import { DECODER_PARAMS, decoderArchitecture, readDecoderSizes } from './decoder.js';
import type { ConfigOf, Family } from './family.js';
import { layerWindows, readLayerTypes } from './layer-types.js';
import { LIMITS } from './limits.js';

type GemmaConfig = Omit<ConfigOf<'gemma3_text'>, 'model_type' | 'rope_local_base_freq'>;

const { gate, up, down, norm, head, post_attention_norm, ...attention } = DECODER_PARAMS.modules;

/** Norms stand before and behind attention and MLP. */
export const GEMMA_PARAMS = {
  ...DECODER_PARAMS,
  naming: 'gemma',
  modules: {
    ...attention,
    attention_output_norm: post_attention_norm,
    post_attention_norm: 'model.layers.{}.pre_feedforward_layernorm',
    gate,
    up,
    down,
    mlp_output_norm: 'model.layers.{}.post_feedforward_layernorm',
    norm,
    head,
  },
};

export const GEMMA_FIELDS: Family['fields'] = {
  hidden_activation: { description: 'The activation of the gate in the MLP.' },
  query_pre_attn_scalar: { description: "Attention's scores are divided by its square root." },
  sliding_window: { description: 'Number of tokens that a query attends to, including itself.' },
};

/**
 * @param slides returns whether a layer has the window if `layer_types` is absent
 */
export function readGemma<Rope extends RopeConfig>(
  reader: ConfigReader,
  defaults: { max_position_embeddings: number; rope_theta: number },
  rope: (maxPositions: number, headDim: number) => Rope,
  slides: (layer: number) => boolean,
): GemmaConfig & Rope {
  reader.ignore(['cache_implementation', 'sliding_window_size']);
  reader.ignoreWithWarning(['hidden_act'], 'hidden_activation is the activation', ['gelu_pytorch_tanh']);
  reader.only('use_bidirectional_attention', [false], 'attention is causal');
  const decoder = readDecoderSizes(
    reader,
    { ...defaults, rms_norm_eps: 1e-6, num_key_value_heads: 4, head_dim: 256, tie_word_embeddings: true },
    rope,
  );
  const window = reader.integer('sliding_window', { ...LIMITS.window, fallback: 4096 });
  return {
    ...decoder,
    attention_bias: reader.flag('attention_bias', false),
    hidden_activation: reader.choice('hidden_activation', {
      values: { gelu_pytorch_tanh: 'gelu_pytorch_tanh' } as const,
      fallback: 'gelu_pytorch_tanh',
      why: "The gate of this family's MLP is GELU by tanh.",
    }),
    query_pre_attn_scalar: reader.number('query_pre_attn_scalar', { ...LIMITS.factor, fallback: 256 }),
    sliding_window: window,
    layer_types: readLayerTypes(reader, decoder.num_hidden_layers, window, slides),
  };
}

export function gemmaArchitecture(config: GemmaConfig): Architecture {
  return {
    ...decoderArchitecture(config),
    norm_offset: 1,
    mlp: 'geglu_tanh',
    attention_scale: config.query_pre_attn_scalar ** -0.5,
    layer_windows: layerWindows(config),
    embedding_scale: config.hidden_size ** 0.5,
    rounds_embedding_scale: true,
  };
}

/**
 * Returns why llama.cpp would compute a Gemma otherwise.
 *
 * @param sizes every layer whose number is a multiple of `period` has no window; `largest` is the number of layers of
 *   the largest model, which has other scores
 */
export function unsupportedGemma(
  model: Architecture,
  sizes: { period: number; largest: number },
): string | null {
  const { head_dim, hidden_size, num_attention_heads, num_hidden_layers, layer_windows } = model;
  const { period, largest } = sizes;
  if (model.qkv_bias) return 'llama.cpp has no biases for gemma (attention_bias)';
  if (layer_windows.some((window, layer) => (window === 0) !== ((layer + 1) % period === 0)))
    return `llama.cpp's gemma has no window in layers whose number is a multiple of ${period}, and layer_types differs`;
  if (!['none', 'linear'].includes(model.rope_scaling.type))
    return `llama.cpp scales all layers of gemma by ${model.rope_scaling.type}, not only those without a window`;
  // llama.cpp knows the largest models by their number of layers.
  const divisor = num_hidden_layers === largest ? Math.floor(hidden_size / num_attention_heads) : head_dim;
  return model.attention_scale === divisor ** -0.5
    ? null
    : `llama.cpp's gemma needs query_pre_attn_scalar ${divisor}`;
}
