import { ZerofleetError } from '../../contracts/index.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { trainedArchitecture } from '../../spec/index.js';
import { retryTransient } from '../common/errors.js';
import { BytesTokenizer } from '../encoding/bytes-tokenizer.js';
import { HfTokenizer } from '../encoding/hf-tokenizer.js';
import type { PromptTokenizer } from '../encoding/prompt-tokenizer.js';
import { readTokenizer } from '../encoding/tokenizer-store.js';
import { tokenizerSource } from '../export/model-source.js';
import { type OpenCheckpoint, openCheckpoint } from '../export/open-checkpoint.js';
import { type CoreEngine, drawText, type NativeCore } from '../native/adapter.js';
import type { TaskRequest, TaskResults } from '../tasks/protocol.js';
import { buildPrompt } from './prompt.js';

type SampleTask = Extract<TaskRequest, { kind: 'sample' }>;

/**
 * Continues a text with a checkpoint's weights, in the tokens of its training, until the end of the document or `max_tokens`. Only one
 * parameter is in memory besides the model.
 * @throws ZerofleetError `manifest_invalid`, `shard_corrupt`; `tokenizer_invalid`, `model_not_found`, `token_out_of_vocab`; errors of the
 *   object store and of the native core
 */
export async function sampleCheckpoint(
  objects: ObjectStore,
  core: Pick<NativeCore, 'createEngine' | 'paramTable' | 'castTo16Bit' | 'initialValues' | 'quantizedValues'>,
  task: SampleTask,
): Promise<TaskResults['sample']> {
  const tokenizer = await openTokenizer(objects, task);
  const { prompt: _, messages: __, weights, ...options } = task.request;
  const prompt = buildPrompt(tokenizer, task.request, task.spec.data);
  const { tokens, text, end_text, end_token } = prompt;
  const model = trainedArchitecture(task.spec);
  const { max_tokens } = options;
  // The weights of a quantized base arrive restored.
  const engine = core.createEngine(
    { ...model, quantization: null },
    {
      threads: task.threads,
      dtype: task.spec.train.precision,
      device: 'cpu',
      cache_tokens: Math.min(tokens.length + max_tokens, model.max_position_embeddings),
      max_texts: 1,
    },
  );
  try {
    const checkpoint = await openCheckpoint(objects, core, { ...task, weights });
    await loadWeights(checkpoint, engine, core.paramTable(model));
    const num_tokens = Math.min(tokenizer.vocab_size, model.vocab_size);
    const end_tokens = end_token === null ? [] : [end_token];
    const drawn = await drawText(engine, tokens, { ...options, num_tokens, end_tokens, top_logprobs: 0 });
    const completion = tokenizer.decodeAfter(tokens, drawn);
    const end = end_text === '' ? -1 : completion.indexOf(end_text);
    return {
      prompt: text,
      completion: end < 0 ? completion : completion.slice(0, end),
      num_tokens: drawn.length,
    };
  } finally {
    engine.close();
  }
}

async function openTokenizer(
  objects: ObjectStore,
  { spec, retry: policy }: SampleTask,
): Promise<PromptTokenizer> {
  if (spec.data.tokenizer === 'bytes') return new BytesTokenizer();
  const model = tokenizerSource(spec);
  if (model === null)
    throw new ZerofleetError(
      'tokenizer_invalid',
      'the job was trained on uploaded tokens, and its initial model, if any, has no tokenizer',
    );
  return new HfTokenizer(
    await retryTransient(() => readTokenizer(objects, model), policy),
    spec.data.parse_special_tokens,
  );
}

async function loadWeights(
  { readWeights }: OpenCheckpoint,
  engine: CoreEngine,
  params: ReturnType<NativeCore['paramTable']>,
): Promise<void> {
  for (const { index, name, numel } of params) {
    const pieces: Uint8Array[] = [];
    for await (const piece of readWeights(name, numel)) pieces.push(piece);
    engine.setParam(index, Buffer.concat(pieces));
  }
}
