import type { Architecture } from '../../../contracts/architecture.js';
import { ZerofleetError } from '../../../contracts/index.js';
import { BytesTokenizer } from '../../../formats/encoding/bytes-tokenizer.js';
import type { AnswerDecoder } from '../../../formats/encoding/prompt-tokenizer.js';
import { TokenDecoder } from '../../../formats/tokenizer/token-decoder.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { toRankError } from '../../shared/errors.js';
import type { AnswerEngineOptions, CoreEngine, NativeCore, ParamInfo } from '../../shared/native/adapter.js';
import { type ReadElements, type ReadParam, widened } from '../export/base-reader.js';
import type { ServedBase, ServedSource, ServeInput, TaskRequest } from '../protocol.js';
import { elementBytes, requireMemory } from './memory.js';
import { PromptThreads } from './prompt-threads.js';
import { openBase, openWeights, shapeOf, textRules, withoutQuantization } from './served-source.js';
import { TokenMasks } from './token-masks.js';

/** Sequences that run at the same time; others wait. */
const MAX_SEQUENCES = 32;
/** Memory of the KV cache, unless a sequence of CERTAIN_LENGTH needs more. */
const CACHE_BYTES = 512 * 2 ** 20;
/** Largest number of tokens in a sequence. */
const MAX_LENGTH = 131_072;
/** Tokens of a sequence that the KV cache holds whatever its memory. */
const CERTAIN_LENGTH = 32_768;

export type ServeTask = Extract<TaskRequest, { kind: 'serve' }>;
type Core = Pick<
  NativeCore,
  'createEngine' | 'paramTable' | 'castTo16Bit' | 'initialValues' | 'quantizedValues'
>;

/**
 * Loads the weights of a model, in the precision of their source. Needs memory for them and for the parameters of one
 * more layer.
 * @throws ZerofleetError `model_does_not_fit`, `model_memory_in_use`; `manifest_invalid`, `shard_corrupt`;
 *   `model_not_found`; errors of the object store and of the native core
 */
export async function loadModel(
  objects: ObjectStore,
  core: Core,
  { weights, threads, gpu, retry }: ServeTask,
  onAllocated: (bytes: number) => void,
): Promise<CoreEngine> {
  // A CPU's engine quantizes what trainings quantize, and keeps the codes. GPUs get the restored weights.
  const { model, precision } = engineOf(gpu === null ? weights : withoutQuantization(weights));
  const source = gpu === null ? withoutQuantization(weights) : weights;
  const options: AnswerEngineOptions = {
    threads,
    dtype: precision,
    device: gpu === null ? 'cpu' : 'cuda',
    cache_tokens: cacheTokens(model, elementBytes(precision)),
    max_length: MAX_LENGTH,
    max_sequences: MAX_SEQUENCES,
  };
  const engine = await allocated(async () => core.createEngine(model, options));
  try {
    requireMemory(engine.numBytes, gpu);
    onAllocated(engine.numBytes);
    const readParam =
      'base' in source
        ? await openBase(objects, core, source, retry)
        : await openWeights(objects, core, source, retry);
    await setParams(engine, core.paramTable(model), readParam);
  } catch (error) {
    engine.close();
    throw error;
  }
  return engine;
}

/** Reads a piece while the engine takes the piece before. */
async function setParams(
  engine: CoreEngine,
  params: readonly Pick<ParamInfo, 'index' | 'name' | 'numel'>[],
  readParam: ReadElements,
): Promise<void> {
  const pieces = piecesOf(params, readParam);
  try {
    for (let next = pieces.next(); ; ) {
      const { value: piece, done } = await next;
      if (done) return;
      next = pieces.next();
      next.catch(() => undefined);
      engine.setParam(piece.index, piece.begin, piece.dtype, piece.bytes);
    }
  } finally {
    await pieces.return();
  }
}

async function* piecesOf(
  params: readonly Pick<ParamInfo, 'index' | 'name' | 'numel'>[],
  readParam: ReadElements,
) {
  for (const { index, name, numel } of params) {
    let begin = 0;
    for await (const { dtype, bytes } of readParam(name, numel)) {
      yield { index, begin, dtype, bytes };
      begin += bytes.length / elementBytes(dtype);
    }
  }
}

function engineOf(weights: ServedBase | ServedSource): {
  model: Architecture;
  precision: ServedBase['precision'];
} {
  if (!('base' in weights)) {
    const { architecture, precision } = shapeOf(weights);
    return { model: architecture, precision };
  }
  return { model: { ...weights.architecture, adapter: null }, precision: weights.precision };
}

/** The parts of a variant: threads for prompts and for constrained answers, the decoder, and the engine's adapter. */
export interface Variant {
  prompts: Pick<PromptThreads, 'build' | 'close'>;
  masks: Pick<TokenMasks, 'next' | 'close'>;
  decoder: AnswerDecoder;
  /** Only tokens below this are drawn. */
  num_tokens: number;
  /** 0: the model alone. */
  adapter: number;
}

/**
 * Loads a variant: its tokenizer and chat template, and the adapter over the engine's model.
 * @throws ZerofleetError `tokenizer_invalid`; `model_memory_in_use`; the other errors of `loadModel`
 */
export async function loadVariant(
  objects: ObjectStore,
  core: Core,
  engine: CoreEngine,
  {
    source,
    is_adapter,
    retry,
  }: Pick<Extract<ServeInput, { kind: 'load_variant' }>, 'source' | 'is_adapter'> & Pick<ServeTask, 'retry'>,
): Promise<Variant & { bytes: number }> {
  const rules = await textRules(objects, source, retry);
  const prompts = new PromptThreads({ ...rules, max_length: engine.maxLength });
  try {
    const { architecture } = shapeOf(source);
    const { vocab_size, table } = await prompts.decoding();
    const decoder = table === null ? new BytesTokenizer() : new TokenDecoder(table);
    const numTokens = Math.min(vocab_size, architecture.vocab_size);
    const { adapter } = architecture;
    const masks = new TokenMasks({ table, num_tokens: numTokens });
    const loaded = { prompts, masks, decoder, num_tokens: numTokens };
    if (!is_adapter || adapter === null) return { ...loaded, adapter: 0, bytes: 0 };
    const params = core.paramTable(architecture).filter(({ base }) => !base);
    const readParam = widened(await openWeights(objects, core, source, retry));
    const values: Uint8Array[] = [];
    for (const { name, numel } of params) values.push(await concatenated(readParam(name, numel)));
    const added = await allocated(() => engine.addAdapter(adapter, values));
    return { ...loaded, adapter: added.adapter, bytes: added.num_bytes };
  } catch (error) {
    await prompts.close();
    throw error;
  }
}

/** Reports memory that a GPU cannot allocate. Main memory is taken only when it is written. */
async function allocated<T>(allocate: () => Promise<T>): Promise<T> {
  try {
    return await allocate();
  } catch (error) {
    const { code, message } = toRankError(error);
    if (code !== 'out_of_memory') throw error;
    throw new ZerofleetError('model_memory_in_use', message);
  }
}

/** Number of tokens in the KV cache. */
function cacheTokens(model: Architecture, element: number): number {
  const { num_hidden_layers, num_key_value_heads, head_dim, max_position_embeddings } = model;
  const bytesPerToken = 2 * num_hidden_layers * num_key_value_heads * head_dim * element;
  const longest = Math.min(max_position_embeddings, MAX_LENGTH);
  const numTokens = Math.floor(CACHE_BYTES / bytesPerToken);
  return Math.max(Math.min(longest, CERTAIN_LENGTH), Math.min(numTokens, MAX_SEQUENCES * longest));
}

async function concatenated(pieces: ReturnType<ReadParam>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const piece of pieces) parts.push(piece);
  return Buffer.concat(parts);
}
