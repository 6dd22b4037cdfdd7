import { ZerofleetError } from '../../contracts/index.js';
import { tokenizerOf } from '../../platform/encoding/encode-batch.js';
import type { PromptTokenizer } from '../../platform/encoding/prompt-tokenizer.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { totalMemory, usableMemory } from '../../platform/process/usable-memory.js';
import { ELEMENT_BYTES } from '../../platform/safetensors/header.js';
import type { Architecture } from '../../spec/index.js';
import { toRankError } from '../common/errors.js';
import type { ReadParam } from '../export/base-reader.js';
import type { AnswerEngineOptions, CoreEngine, NativeCore, ParamInfo } from '../native/adapter.js';
import type { HostInput, ServedBase, ServedSource, TaskRequest } from '../tasks/protocol.js';
import { PromptThreads } from './prompt-threads.js';
import { openBase, openWeights, shapeOf, textRules } from './served-source.js';

/** Texts that are computed at once; more wait. */
const MAX_TEXTS = 32;
/** Memory for keys and values, unless one text needs more. */
const CACHE_BYTES = 512 * 2 ** 20;
/** Tokens of the longest text. */
const MAX_LENGTH = 32_768;
/** Share of the machine's available memory that a model may take. */
const MEMORY_SHARE = 0.8;

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
): Promise<{ engine: CoreEngine; bytes: number }> {
  const { model, precision } = engineOf(weights);
  const engine = createEngine(core, model, {
    threads,
    dtype: precision,
    device: gpu === null ? 'cpu' : 'cuda',
    cache_tokens: cacheTokens(model, elementBytes(precision)),
    max_length: MAX_LENGTH,
    max_texts: MAX_TEXTS,
  });
  try {
    requireMemory(engine.num_bytes, gpu);
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
  return { engine, bytes: engine.num_bytes };
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

/** What makes prompts, the engine adapter that answers, and the tokenizer that decodes answers. */
export interface Variant {
  prompts: Pick<PromptThreads, 'build' | 'close'>;
  tokenizer: Pick<PromptTokenizer, 'decodeAfter' | 'textKind'>;
  /** Tokens below it are drawn. */
  num_tokens: number;
  /** 0: the model alone. */
  adapter: number;
}

/**
 * Loads a variant: how it makes texts, and the adapter over the engine's model.
 * @throws ZerofleetError `tokenizer_invalid`, and the errors of `loadModel`
 */
export async function loadVariant(
  objects: ObjectStore,
  core: Core,
  engine: CoreEngine,
  {
    source,
    over,
    gpu,
    retry,
  }: Pick<Extract<HostInput, { kind: 'variant' }>, 'source' | 'over'> & Pick<ServeTask, 'gpu' | 'retry'>,
): Promise<Variant & { bytes: number }> {
  const { architecture, precision } = shapeOf(source);
  const rules = await textRules(objects, source, retry);
  const tokenizer = tokenizerOf(rules);
  const num_tokens = Math.min(tokenizer.vocab_size, architecture.vocab_size);
  const variant = (adapter: number, bytes: number) => {
    const prompts = new PromptThreads({ ...rules, max_length: engine.max_length });
    return { prompts, tokenizer, num_tokens, adapter, bytes };
  };
  if (!over || architecture.adapter === null) return variant(0, 0);
  const params = core.paramTable(architecture).filter(({ base }) => !base);
  const bytes = elementBytes(precision) * numelOf(params);
  requireMemory(bytes, gpu);
  const read = await openWeights(objects, core, source, retry);
  const values: Uint8Array[] = [];
  for (const { name, numel } of params) values.push(await whole(read(name, numel)));
  return variant(engine.addAdapter(architecture.adapter, values), bytes);
}

const elementBytes = (precision: ServedBase['precision']) => (precision === 'fp32' ? 4 : 2);
const numelOf = (params: readonly ParamInfo[]) => params.reduce((sum, { numel }) => sum + numel, 0);

/** Memory of the machine is taken when it is written, that of a GPU at once. */
function createEngine(core: Core, model: Architecture, options: AnswerEngineOptions): CoreEngine {
  try {
    return core.createEngine(model, options);
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

/** @throws ZerofleetError `model_does_not_fit`, `model_memory_in_use` */
function requireMemory(bytes: number, gpu: ServeTask['gpu']): void {
  const { free_bytes, total_bytes } = gpu ?? {
    free_bytes: MEMORY_SHARE * usableMemory(),
    total_bytes: MEMORY_SHARE * totalMemory(),
  };
  if (bytes <= free_bytes) return;
  const mib = (count: number) => `${Math.max(0, Math.ceil(count / 2 ** 20))} MiB`;
  const owner = gpu === null ? 'worker' : "worker's GPU";
  const needed = `the model needs ${mib(bytes)}, and the ${owner} has`;
  if (bytes > total_bytes)
    throw new ZerofleetError(
      'model_does_not_fit',
      `${needed} ${mib(total_bytes)} for models; use a worker with more memory`,
    );
  throw new ZerofleetError(
    'model_memory_in_use',
    `${needed} ${mib(free_bytes)} left; try again when trainings have ended and other models are idle`,
  );
}

async function whole(pieces: ReturnType<ReadParam>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}
