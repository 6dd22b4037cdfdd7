import type { ObjectStore } from '../../platform/object-store/index.js';
import { readManifest } from '../checkpoint/read-manifest.js';
import { isRetryable } from '../errors.js';
import { TensorReader } from '../export/tensor-reader.js';
import type { CoreSampler, NativeCore } from '../native/adapter.js';
import { modelConfig } from '../rank/trainer-config.js';
import { retry } from '../retry.js';
import type { TaskRequest, TaskResults } from '../tasks/protocol.js';

type SampleTask = Extract<TaskRequest, { kind: 'sample' }>;

/** Tokens of the `bytes` tokenizer; a model may have a larger vocabulary. */
const NUM_BYTES = 256;

/**
 * Lets a checkpoint's weights go on with a text. One parameter at a time is in memory besides the model.
 * @throws ZerofleetError `manifest_invalid`, `shard_corrupt`; errors of the object store and of the native core
 */
export async function sampleCheckpoint(
  objects: ObjectStore,
  core: Pick<NativeCore, 'createSampler' | 'paramTable'>,
  task: SampleTask,
): Promise<TaskResults['sample']> {
  const model = modelConfig(task.spec.model.config);
  const sampler = core.createSampler(model, task.threads);
  try {
    await loadWeights(objects, sampler, core.paramTable(model), task);
    const { prompt, ...options } = task.request;
    const tokens = await sampler.sample([...Buffer.from(prompt)], { ...options, num_tokens: NUM_BYTES });
    return { completion: Buffer.from(tokens).toString('utf8'), num_tokens: tokens.length };
  } finally {
    sampler.close();
  }
}

async function loadWeights(
  objects: ObjectStore,
  sampler: CoreSampler,
  params: ReturnType<NativeCore['paramTable']>,
  { checkpoint, retry: policy }: SampleTask,
): Promise<void> {
  const manifest = await retry(() => readManifest(objects, checkpoint), policy, { retryable: isRetryable });
  const reader = new TensorReader({ objects, directory: checkpoint, manifest, retry: policy });
  for (const { index, name, numel } of params) {
    const pieces: Uint8Array[] = [];
    for await (const piece of reader.master(name, numel)) pieces.push(piece);
    sampler.setParam(index, Buffer.concat(pieces));
  }
}
