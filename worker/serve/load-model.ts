import { ZerofleetError } from '../../contracts/index.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { usableMemory } from '../../platform/process/usable-memory.js';
import type { ReadParam } from '../export/base-reader.js';
import type { CoreEngine, ModelConfig, NativeCore } from '../native/adapter.js';
import type { LoadedModel } from './model-host.js';
import { type ServeTask, servedModel } from './served-model.js';

/** Texts that are computed at once; more wait. */
const MAX_TEXTS = 32;
/** Memory for keys and values, unless one text needs more. */
const CACHE_BYTES = 512 * 2 ** 20;
/** Tokens of the longest text. */
const MAX_LENGTH = 32_768;
/** Share of the available memory that a model may take. */
const MEMORY_SHARE = 0.8;

/**
 * Loads a model for answers, that of a checkpoint in the precision of its training. Only one parameter is in memory besides the model.
 * @throws ZerofleetError `model_does_not_fit`; `manifest_invalid`, `shard_corrupt`; `tokenizer_invalid`, `model_not_found`; errors of the
 *   object store and of the native core
 */
export async function loadModel(
  objects: ObjectStore,
  core: Pick<NativeCore, 'createEngine' | 'paramTable' | 'castTo16Bit' | 'initialValues' | 'quantizedValues'>,
  task: ServeTask,
): Promise<LoadedModel & { bytes: number }> {
  const {
    architecture: model,
    precision,
    data,
    tokenizer,
    openWeights,
  } = await servedModel(objects, core, task);
  const params = core.paramTable(model);
  const element = precision === 'fp32' ? 4 : 2;
  const { tokens: cache_tokens, bytes: cache_bytes } = cacheOf(model, element);
  // The weights as they are, and in the order in which products read them.
  const bytes = cache_bytes + 2 * element * params.reduce((sum, { numel }) => sum + numel, 0);
  requireMemory(bytes);
  // The weights of a quantized base arrive restored.
  const engine = core.createEngine(
    { ...model, quantization: null },
    { threads: task.threads, dtype: precision, device: 'cpu', cache_tokens, max_texts: MAX_TEXTS },
  );
  try {
    await loadWeights(await openWeights(), engine, params);
  } catch (error) {
    engine.close();
    throw error;
  }
  const num_tokens = Math.min(tokenizer.vocab_size, model.vocab_size);
  return { engine, tokenizer, data, num_tokens, bytes };
}

function cacheOf(model: ModelConfig, element: number): { tokens: number; bytes: number } {
  const { num_hidden_layers, num_key_value_heads, head_dim, max_position_embeddings } = model;
  const bytes_per_token = 2 * num_hidden_layers * num_key_value_heads * head_dim * element;
  const longest = Math.min(max_position_embeddings, MAX_LENGTH);
  const wanted = Math.floor(CACHE_BYTES / bytes_per_token);
  const tokens = Math.max(longest, Math.min(wanted, MAX_TEXTS * longest));
  return { tokens, bytes: tokens * bytes_per_token };
}

function requireMemory(bytes: number): void {
  const available = usableMemory();
  if (bytes <= MEMORY_SHARE * available) return;
  const mib = (count: number) => `${Math.ceil(count / 2 ** 20)} MiB`;
  throw new ZerofleetError(
    'model_does_not_fit',
    `the model needs ${mib(bytes)} and the worker has ${mib(available)}, of which it gives ${MEMORY_SHARE * 100} %; try again when ` +
      'trainings have ended, or use a worker with more memory',
  );
}

async function loadWeights(
  read: ReadParam,
  engine: CoreEngine,
  params: ReturnType<NativeCore['paramTable']>,
): Promise<void> {
  for (const { index, name, numel } of params) {
    const pieces: Uint8Array[] = [];
    for await (const piece of read(name, numel)) pieces.push(piece);
    engine.setParam(index, Buffer.concat(pieces));
  }
}
