import { ZerofleetError } from '../../../contracts/index.js';
import { BytesTokenizer } from '../../../formats/encoding/bytes-tokenizer.js';
import type { AnswerDecoder } from '../../../formats/encoding/prompt-tokenizer.js';
import { ELEMENT_BYTES } from '../../../formats/safetensors/header.js';
import { TokenDecoder } from '../../../formats/tokenizer/token-decoder.js';
import type { Architecture } from '../../../job-document/index.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { toRankError } from '../../shared/errors.js';
import type { AnswerEngineOptions, CoreEngine, NativeCore } from '../../shared/native/adapter.js';
import type { ReadParam } from '../export/base-reader.js';
import type { HostInput, ServedBase, ServedSource, TaskRequest } from '../protocol.js';
import { elementBytes, requireMemory } from './memory.js';
import { PromptThreads } from './prompt-threads.js';
import { openBase, openWeights, shapeOf, textRules } from './served-source.js';

/** Texts that are computed at once; more wait. */
const MAX_TEXTS = 32;
/** Memory for keys and values, unless one text needs more. */
const CACHE_BYTES = 512 * 2 ** 20;
/** Tokens of the longest text. */
const MAX_LENGTH = 32_768;

export type ServeTask = Extract<TaskRequest, { kind: 'serve' }>;
type Core = Pick<
  NativeCore,
  'createEngine' | 'paramTable' | 'castTo16Bit' | 'initialValues' | 'quantizedValues'
>;

/**
 * Loads the weights of a host, in the precision of their source. Only the parameters of one layer are in memory besides them.
 * @throws ZerofleetError `model_does_not_fit`, `model_memory_in_use`; `manifest_invalid`, `shard_corrupt`; `model_not_found`; errors of the object store and of the
 *   native core
 */
export async function loadModel(
  objects: ObjectStore,
  core: Core,
  { weights, threads, gpu, retry }: ServeTask,
  onAllocated: (bytes: number) => void,
): Promise<CoreEngine> {
  const { model, precision } = engineOf(weights);
  const options: AnswerEngineOptions = {
    threads,
    dtype: precision,
    device: gpu === null ? 'cpu' : 'cuda',
    cache_tokens: cacheTokens(model, elementBytes(precision)),
    max_length: MAX_LENGTH,
    max_texts: MAX_TEXTS,
  };
  const engine = await allocated(async () => core.createEngine(model, options));
  try {
    requireMemory(engine.num_bytes, gpu);
    onAllocated(engine.num_bytes);
    const read =
      'base' in weights
        ? await openBase(objects, core, weights, retry)
        : await openWeights(objects, core, weights, retry);
    for (const { index, name, numel } of core.paramTable(model)) {
      let begin = 0;
      for await (const piece of read(name, numel)) {
        engine.setParam(index, begin, piece);
        begin += piece.length / ELEMENT_BYTES.F32;
      }
    }
  } catch (error) {
    engine.close();
    throw error;
  }
  return engine;
}

/** Weights of a quantized base arrive restored. */
function engineOf(weights: ServedBase | ServedSource): {
  model: Architecture;
  precision: ServedBase['precision'];
} {
  if ('base' in weights)
    return {
      model: { ...weights.architecture, adapter: null, quantization: null },
      precision: weights.precision,
    };
  const { architecture, precision } = shapeOf(weights);
  return { model: { ...architecture, quantization: null }, precision };
}

/** What makes prompts, the engine adapter that answers, and what decodes answers. */
export interface Variant {
  prompts: Pick<PromptThreads, 'build' | 'close'>;
  decoder: AnswerDecoder;
  /** Tokens below it are drawn. */
  num_tokens: number;
  /** 0: the model alone. */
  adapter: number;
}

/**
 * Loads a variant: how it makes texts, and the adapter over the engine's model.
 * @throws ZerofleetError `tokenizer_invalid`; `model_memory_in_use`; the other errors of `loadModel`
 */
export async function loadVariant(
  objects: ObjectStore,
  core: Core,
  engine: CoreEngine,
  {
    source,
    over,
    retry,
  }: Pick<Extract<HostInput, { kind: 'variant' }>, 'source' | 'over'> & Pick<ServeTask, 'retry'>,
): Promise<Variant & { bytes: number }> {
  const rules = await textRules(objects, source, retry);
  const prompts = new PromptThreads({ ...rules, max_length: engine.max_length });
  try {
    const { architecture } = shapeOf(source);
    const { vocab_size, table } = await prompts.decoding();
    const decoder = table === null ? new BytesTokenizer() : new TokenDecoder(table);
    const num_tokens = Math.min(vocab_size, architecture.vocab_size);
    const { adapter } = architecture;
    const loaded = { prompts, decoder, num_tokens };
    if (!over || adapter === null) return { ...loaded, adapter: 0, bytes: 0 };
    const params = core.paramTable(architecture).filter(({ base }) => !base);
    const read = await openWeights(objects, core, source, retry);
    const values: Uint8Array[] = [];
    for (const { name, numel } of params) values.push(await whole(read(name, numel)));
    const added = await allocated(() => engine.addAdapter(adapter, values));
    return { ...loaded, adapter: added.adapter, bytes: added.num_bytes };
  } catch (error) {
    await prompts.close();
    throw error;
  }
}

/** Memory of the machine is taken when it is written, that of a GPU at once. */
async function allocated<T>(allocate: () => Promise<T>): Promise<T> {
  try {
    return await allocate();
  } catch (error) {
    const { code, message } = toRankError(error);
    if (code !== 'out_of_memory') throw error;
    throw new ZerofleetError('model_memory_in_use', message);
  }
}

/** Tokens whose keys and values are kept. */
function cacheTokens(model: Architecture, element: number): number {
  const { num_hidden_layers, num_key_value_heads, head_dim, max_position_embeddings } = model;
  const bytes_per_token = 2 * num_hidden_layers * num_key_value_heads * head_dim * element;
  const longest = Math.min(max_position_embeddings, MAX_LENGTH);
  const wanted = Math.floor(CACHE_BYTES / bytes_per_token);
  return Math.max(longest, Math.min(wanted, MAX_TEXTS * longest));
}

async function whole(pieces: ReturnType<ReadParam>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}
