import { type ExportKind, type ResolvedJobSpec, ZerofleetError } from '../../../contracts/index.js';
import { safetensorsHeader } from '../../../formats/safetensors/header.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import type { NativeCore } from '../../shared/native/adapter.js';
import type { TaskRequest, TaskResults } from '../protocol.js';
import { ExportFolder } from './export-folder.js';
import { MergedWeights } from './merged-weights.js';
import { openCheckpoint } from './open-checkpoint.js';

type ExportRequest = Extract<TaskRequest, { kind: 'export' }>;

export const DTYPES = {
  bf16: { name: 'BF16', bytes: 2 },
  fp16: { name: 'F16', bytes: 2 },
  fp32: { name: 'F32', bytes: 4 },
} as const;

/** @throws ZerofleetError `export_unsupported` for a dtype that safetensors files do not have */
export function safetensorsDtype(dtype: ExportKind['dtype']): keyof typeof DTYPES {
  if (dtype !== 'q8_0') return dtype;
  throw new ZerofleetError('export_unsupported', 'q8_0 is a dtype of the format gguf');
}

/** Returns what an export was computed from; adapters are for the base as it was quantized. */
export function baseOfExport({
  model: { quantization },
}: ResolvedJobSpec): Pick<TaskResults['export'], 'base_quantization'> {
  return quantization === undefined ? {} : { base_quantization: quantization };
}

/** Returns the metadata of a file of weights. Hugging Face readers refuse one without the framework of its layout. */
export function metadataOf(spec: ResolvedJobSpec): Record<string, string> {
  return { format: 'pt', ...baseOfExport(spec) };
}

/**
 * Writes a checkpoint's weights as a Hugging Face model folder, adapters merged, with the tokenizer of the training.
 * Weights are streamed piece by piece. May be repeated: the same checkpoint gives the same bytes.
 * @throws ZerofleetError `manifest_invalid`, `shard_corrupt`, `weight_out_of_range`; errors of the object store
 */
export async function exportModel(
  objects: ObjectStore,
  core: Pick<
    NativeCore,
    'castTo16Bit' | 'initialValues' | 'mergeAdapter' | 'addOutputSquares' | 'quantizedValues'
  >,
  request: ExportRequest,
): Promise<TaskResults['export']> {
  const { spec, prefix, retry: policy } = request;
  const format = safetensorsDtype(request.dtype);
  const checkpoint = await openCheckpoint(objects, core, request);
  const dtype = DTYPES[format];
  const merged = new MergedWeights(checkpoint, core, spec);
  const cast = (fp32: Uint8Array) => (format === 'fp32' ? fp32 : core.castTo16Bit(format, fp32));

  let at = 0;
  const tensors = merged.params.map(({ name, shape, numel }) => {
    const begin = at;
    at += numel * dtype.bytes;
    return { name, dtype: dtype.name, shape, begin, end: at };
  });
  const weights = async function* () {
    yield safetensorsHeader(tensors, metadataOf(spec));
    for (const param of merged.params) for await (const piece of merged.read(param)) yield cast(piece);
  };
  const folder = new ExportFolder(objects, prefix, policy);
  await folder.putConfig(spec, format);
  await folder.put('model.safetensors', weights, { bytes: at });
  await folder.putCompanions(spec);
  const { state_digest } = checkpoint.manifest;
  return { prefix, state_digest, ...baseOfExport(spec), files: folder.files };
}
