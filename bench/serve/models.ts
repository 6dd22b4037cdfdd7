import type { Architecture } from '../../contracts/architecture.js';
import type { ResolvedModelConfig } from '../../contracts/index.js';
import { presets } from '../../job-document/index.js';
import { AnswerEngine, type AnswerEngineOptions, paramTable } from '../../native/js/index.js';

/** Shape of the smallest published Qwen2.5, 494 million parameters. */
const QWEN2_SMALL: ResolvedModelConfig = {
  model_type: 'qwen2',
  hidden_size: 896,
  intermediate_size: 4864,
  num_hidden_layers: 24,
  num_attention_heads: 14,
  num_key_value_heads: 2,
  head_dim: 64,
  vocab_size: 151_936,
  max_position_embeddings: 32_768,
  rms_norm_eps: 1e-6,
  rope_theta: 1_000_000,
  rope_scaling: null,
  tie_word_embeddings: true,
  initializer_range: 0.02,
  hidden_act: 'silu',
  attention_dropout: 0,
  use_sliding_window: false,
  sliding_window: null,
  max_window_layers: 24,
  layer_types: Array.from({ length: 24 }, () => 'full_attention'),
};

const MODELS = {
  'llama-tiny': presets['llama-tiny'],
  'llama-small': presets['llama-small'],
  gpt2: presets.gpt2,
  'qwen2-0.5b': QWEN2_SMALL,
} satisfies Record<string, ResolvedModelConfig>;

export type ServedModel = keyof typeof MODELS;
export const servedModels = Object.keys(MODELS) as ServedModel[];

export function configOf(name: ServedModel): ResolvedModelConfig {
  return MODELS[name];
}

const SPREAD = 0.02;
const BLOCK = 1 << 20;
/** Random weights: blocks of this one, each parameter from another offset on. */
const random = Float32Array.from({ length: BLOCK }, () => (Math.random() - 0.5) * 2 * SPREAD);

/** Yields a parameter's fp32 in pieces; the same in each call. */
export async function* randomWeights({
  index,
  numel,
}: {
  index: number;
  numel: number;
}): AsyncGenerator<Uint8Array> {
  let at = (index * 7919) % BLOCK;
  for (let begin = 0; begin < numel; ) {
    const piece = random.subarray(at, Math.min(BLOCK, at + numel - begin));
    yield new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength);
    begin += piece.length;
    at = 0;
  }
}

/** Returns an engine for sequences of `max_length`, with random weights. */
export async function engineWithWeights(
  model: Architecture,
  limits: Pick<AnswerEngineOptions, 'threads' | 'dtype' | 'max_length' | 'max_sequences'>,
): Promise<AnswerEngine> {
  const cacheTokens = limits.max_sequences * (limits.max_length + 32);
  const engine = AnswerEngine.create(model, { ...limits, device: 'cpu', cache_tokens: cacheTokens });
  for (const param of paramTable(model)) {
    let begin = 0;
    for await (const piece of randomWeights(param)) {
      engine.setParam(param.index, begin, 'fp32', piece);
      begin += piece.length / Float32Array.BYTES_PER_ELEMENT;
    }
  }
  return engine;
}
