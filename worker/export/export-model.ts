import { createHash } from 'node:crypto';
import type { ExportFile, JobExport } from '../../contracts/index.js';
import { exportPrefix } from '../../platform/checkpoint/layout.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { safetensorsHeader } from '../../platform/safetensors/header.js';
import { readManifest } from '../checkpoint/read-manifest.js';
import { isRetryable } from '../errors.js';
import type { NativeCore } from '../native/adapter.js';
import { retry } from '../retry.js';
import type { TaskRequest } from '../tasks/protocol.js';
import { hfConfig } from './hf-config.js';
import { companionsOf, sourceConfig, sourceFolder } from './model-source.js';
import { TensorReader } from './tensor-reader.js';

type ExportRequest = Extract<TaskRequest, { kind: 'export_model' }>;

const DTYPES = {
  bf16: { name: 'BF16', bytes: 2 },
  fp16: { name: 'F16', bytes: 2 },
  fp32: { name: 'F32', bytes: 4 },
} as const;

/**
 * Writes a checkpoint's weights as a Hugging Face model folder, with the tokenizer that they were trained with. The weights pass
 * through piece by piece. May be repeated: the same checkpoint gives the same bytes.
 * @throws ZerofleetError `manifest_invalid`, `shard_corrupt`, `weight_out_of_range`; errors of the object store
 */
export async function exportModel(
  objects: ObjectStore,
  core: Pick<NativeCore, 'castTo16Bit'>,
  request: ExportRequest,
): Promise<JobExport> {
  const { job_id, spec, checkpoint, retry: policy } = request;
  const manifest = await retry(() => readManifest(objects, checkpoint), policy, { retryable: isRetryable });
  const prefix = exportPrefix(job_id, manifest.step);
  const reader = new TensorReader({ objects, directory: checkpoint, manifest, retry: policy });
  const format = spec.export.dtype;
  const dtype = DTYPES[format];
  const cast = (fp32: Uint8Array) => (format === 'fp32' ? fp32 : core.castTo16Bit(format, fp32));

  let at = 0;
  const tensors = manifest.params.map(({ name, shape, numel }) => {
    const begin = at;
    at += numel * dtype.bytes;
    return { name, dtype: dtype.name, shape, begin, end: at };
  });
  const weights = async function* () {
    // Readers of Hugging Face refuse a file that does not say which framework's layout it has.
    yield safetensorsHeader(tensors, { format: 'pt' });
    for (const { name, numel } of manifest.params)
      for await (const piece of reader.master(name, numel)) yield cast(piece);
  };
  const folder = sourceFolder(spec);
  const again = <T>(work: () => Promise<T>) => retry(work, policy, { retryable: isRetryable });
  const source = folder === null ? null : await again(() => sourceConfig(objects, folder, spec));
  const config = async function* () {
    yield Buffer.from(`${JSON.stringify(hfConfig(spec, source), null, 2)}\n`);
  };
  const put = (name: string, body: () => AsyncIterable<Uint8Array>) =>
    again(() => putHashed(objects, prefix, name, body));
  const files = [await put('config.json', config), await put('model.safetensors', weights)];
  for (const { name, content } of await again(() => companionsOf(objects, spec)))
    files.push(await put(name, content));
  return { prefix, state_digest: manifest.state_digest, files };
}

async function putHashed(
  objects: ObjectStore,
  prefix: string,
  name: string,
  body: () => AsyncIterable<Uint8Array>,
): Promise<ExportFile> {
  const hash = createHash('sha256');
  const hashed = async function* () {
    for await (const piece of body()) {
      hash.update(piece);
      yield piece;
    }
  };
  const { bytes } = await objects.put(`${prefix}/${name}`, hashed());
  return { name, bytes, sha256: hash.digest('hex') };
}
