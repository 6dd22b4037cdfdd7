/** The frozen base under adapters, which a checkpoint does not contain. */
import type { Architecture } from '../../../contracts/architecture.js';
import { modelKey, type ResolvedJobSpec } from '../../../contracts/index.js';
import type { RetryPolicy } from '../../../contracts/rank-protocol.js';
import type { Manifest } from '../../../formats/checkpoint/manifest.js';
import { planWeightReads, readWeights } from '../../../formats/models/read-weights.js';
import type { ModelWeights, WeightDtype } from '../../../formats/models/weights.js';
import { ELEMENT_BYTES } from '../../../formats/safetensors/header.js';
import { modelParams, trainedArchitecture } from '../../../job-document/index.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { baseError, retryTransient } from '../../shared/errors.js';
import type { NativeCore, QuantizedShape } from '../../shared/native/adapter.js';
import { readManifest } from '../../shared/read-manifest.js';
import { widenToFp32 } from '../../shared/widen.js';
import type { StoredWeights } from '../protocol.js';
import { ChunkReader } from './chunk-reader.js';
import { TensorReader } from './tensor-reader.js';

/** Reads a whole parameter in pieces of whole elements, in their order: fp32, little-endian. */
export type ReadParam = (param: string, numel: number) => AsyncIterable<Uint8Array>;

/** Elements as they are stored, little-endian. */
export interface StoredElements {
  dtype: Precision;
  bytes: Uint8Array;
}

/** Reads a whole parameter in pieces of whole elements, in their order. */
export type ReadElements = (param: string, numel: number) => AsyncIterable<StoredElements>;

type Precision = ResolvedJobSpec['train']['precision'];

interface BaseOptions {
  objects: ObjectStore;
  core: Pick<NativeCore, 'castTo16Bit' | 'initialValues' | 'quantizedValues'>;
  /** Document of the job whose checkpoint has the base. */
  spec: ResolvedJobSpec;
  manifest: Manifest;
  retry: RetryPolicy;
}

const PRECISIONS = { F32: 'fp32', BF16: 'bf16', F16: 'fp16' } as const satisfies Record<
  WeightDtype,
  Precision
>;
const STORED_AS = { fp32: 'F32', bf16: 'BF16', fp16: 'F16' } as const satisfies Record<
  Precision,
  WeightDtype
>;

/** Elements of a seed's values that are computed at a time. */
const PIECE_ELEMENTS = 1 << 18;

/**
 * Opens the base of a checkpoint's adapters. Its weights are those that the training computed with: rounded to its
 * precision, and restored from codes if they are quantized.
 * @throws ZerofleetError `base_damaged`, also while reading; errors of the object store
 */
export async function openBase(
  options: BaseOptions,
  source: NonNullable<Manifest['base']>['source'],
): Promise<ReadParam> {
  const { core, spec } = options;
  const { precision } = spec.train;
  const read = await openSource(options, source).catch((error: unknown) => Promise.reject(baseError(error)));
  return asTrained(read, core, { architecture: trainedArchitecture(spec), precision });
}

/**
 * Returns the weights that a training under adapters computes with. @throws ZerofleetError `base_damaged` while reading
 */
export function asTrained(
  read: ReadParam,
  core: Pick<NativeCore, 'castTo16Bit' | 'quantizedValues'>,
  { architecture, precision }: { architecture: Architecture; precision: Precision },
): ReadParam {
  const rounded = (fp32: Uint8Array) =>
    precision === 'fp32'
      ? fp32
      : widenToFp32(precision === 'bf16' ? 'BF16' : 'F16', core.castTo16Bit(precision, fp32));
  const quantized = quantizedParams(architecture, precision);
  return async function* (param, numel) {
    const matrix = quantized.get(param);
    try {
      if (matrix === undefined) for await (const piece of read(param, numel)) yield rounded(piece);
      else yield core.quantizedValues(matrix, await whole(read(param, numel)));
    } catch (error) {
      throw baseError(error);
    }
  };
}

function quantizedParams(
  architecture: Architecture,
  precision: Precision,
): ReadonlyMap<string, QuantizedShape> {
  return new Map(
    modelParams(architecture).flatMap(({ name, shape: [rows = 0, columns = 0], quantization }) =>
      quantization === null ? [] : [[name, { format: quantization, precision, rows, columns }]],
    ),
  );
}

async function whole(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

async function openSource(
  { objects, core, spec, manifest, retry }: BaseOptions,
  source: NonNullable<Manifest['base']>['source'],
): Promise<ReadParam> {
  if ('seed' in source) {
    const model = trainedArchitecture(spec);
    const index = new Map(manifest.params.map(({ name }, i) => [name, i]));
    return async function* (param, numel) {
      for (let begin = 0; begin < numel; begin += PIECE_ELEMENTS) {
        const end = Math.min(numel, begin + PIECE_ELEMENTS);
        yield core.initialValues(model, source.seed, index.get(param) ?? -1, begin, end);
      }
    };
  }
  return openStored(objects, source, retry);
}

/**
 * Opens weights without adapters: of an uploaded model, or of a checkpoint. @throws ZerofleetError `model_corrupt`,
 * `manifest_invalid`; errors of the object store
 */
export async function openStored(
  objects: ObjectStore,
  source: StoredWeights,
  retry: RetryPolicy,
): Promise<ReadParam> {
  if ('model' in source) return widened(await openModel(objects, source.model, retry));
  const directory = source.prefix;
  const manifest = await retryTransient(() => readManifest(objects, directory), retry);
  const reader = new TensorReader({ objects, directory, manifest, retry });
  return (param, numel) => reader.read('master', param, numel);
}

/** Opens the weights of an uploaded model. @throws ZerofleetError `model_corrupt`; errors of the object store */
export async function openModel(
  objects: ObjectStore,
  model: string,
  retry: RetryPolicy,
): Promise<ReadElements> {
  const directory = modelKey(model);
  const weights = await retryTransient(() => readWeights(objects, directory), retry);
  const chunks = new ChunkReader({ objects, directory, files: weights.files, retry });
  return (param, numel) => modelParam(weights, chunks, param, numel);
}

/** Returns a reader of the same elements in fp32. */
export function widened(read: ReadElements): ReadParam {
  return async function* (param, numel) {
    for await (const elements of read(param, numel)) yield toFp32(elements);
  };
}

export function toFp32({ dtype, bytes }: StoredElements): Uint8Array {
  return widenToFp32(STORED_AS[dtype], bytes);
}

/** Reads a parameter of an uploaded model. */
async function* modelParam(
  weights: ModelWeights,
  chunks: ChunkReader,
  param: string,
  numel: number,
): AsyncGenerator<StoredElements> {
  const wanted = [{ state: 'master' as const, param, begin: 0, end: numel }];
  const reads = planWeightReads(weights, wanted).sort((a, b) => a.begin - b.begin);
  for (const { file, byte_begin, byte_end, dtype } of reads)
    for await (const bytes of wholeElements(chunks.read(file, byte_begin, byte_end), dtype))
      yield { dtype: PRECISIONS[dtype], bytes };
}

/** Moves the borders of pieces that are inside of elements. */
async function* wholeElements(
  pieces: AsyncIterable<Uint8Array>,
  dtype: WeightDtype,
): AsyncGenerator<Uint8Array> {
  let left = new Uint8Array();
  for await (const piece of pieces) {
    const bytes = left.length === 0 ? piece : Buffer.concat([left, piece]);
    const whole = bytes.length - (bytes.length % ELEMENT_BYTES[dtype]);
    left = bytes.slice(whole);
    if (whole > 0) yield bytes.subarray(0, whole);
  }
}
