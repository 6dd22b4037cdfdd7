/**
 * Index of the weights of an uploaded model, written when the model was checked:
 *
 *     models/<model>/config.json, tokenizer.json …      as uploaded
 *     models/<model>/model-00001-of-00002.safetensors   as uploaded
 *     models/<model>/zero/<parameter>/fp32.pt …         of a checkpoint in DeepSpeed's universal layout, as uploaded
 *     models/<model>/WEIGHTS.json                       this index; readers trust it and read no headers
 */

import { modelKey, ZerofleetError } from '../../contracts/index.js';
import { STATE_NAMES } from '../../contracts/state-records.js';
import { Check, type Static, Type } from '../../platform/schema.js';
import { LossScaler, type Manifest } from '../checkpoint/manifest.js';
import { ELEMENT_BYTES } from '../safetensors/header.js';

export const WEIGHTS_FILE = 'WEIGHTS.json';

/** Dtypes that weights may be stored in; each of their values is representable in fp32. */
export const WEIGHT_DTYPES = ['F32', 'BF16', 'F16'] as const;
export type WeightDtype = (typeof WEIGHT_DTYPES)[number];

export function isWeightDtype(dtype: string): dtype is WeightDtype {
  return (WEIGHT_DTYPES as readonly string[]).includes(dtype);
}

const strict = { additionalProperties: false };
const Count = Type.Integer({ minimum: 0 });

/** Parameter or run of its elements at bytes `[byte_begin, byte_end)` of the file (absolute), row-major. */
const Tensor = Type.Object(
  {
    param: Type.String({ minLength: 1 }),
    /** `master` by default. */
    state: Type.Optional(Type.Union(STATE_NAMES.map((state) => Type.Literal(state)))),
    dtype: Type.Union(WEIGHT_DTYPES.map((dtype) => Type.Literal(dtype))),
    /** Shape of the whole parameter. */
    shape: Type.Array(Count),
    /** First element of a run; absent if the tensor is the whole parameter. */
    begin: Type.Optional(Count),
    byte_begin: Count,
    byte_end: Count,
  },
  strict,
);

const File = Type.Object(
  {
    /** File name in the model's own folder. */
    file: Type.String({ pattern: '^([A-Za-z0-9_-][A-Za-z0-9._-]*/)*[A-Za-z0-9_-][A-Za-z0-9._-]*$' }),
    bytes: Count,
    /** Eight digits for each CHUNK_BYTES of the file. */
    crc32c: Type.String({ pattern: '^[0-9a-f]*$' }),
    tensors: Type.Array(Tensor),
  },
  strict,
);

export const ModelWeights = Type.Object(
  {
    format_version: Type.Literal(1),
    /** Optimizer updates; only with an optimizer state. */
    optimizer_steps: Type.Optional(Count),
    /** Only with an optimizer state that has a dynamic one. */
    loss_scaler: Type.Optional(LossScaler),
    files: Type.Array(File),
  },
  strict,
);
export type ModelWeights = Static<typeof ModelWeights>;
const documents = new Check(ModelWeights);
export type WeightsFile = Static<typeof File>;
export type WeightTensor = Static<typeof Tensor>;

/**
 * Returns the elements `[begin, end)` of the parameter that a file has, and the parameter's number of
 * elements.
 */
export function elementsOf({ param, dtype, shape, begin = 0, byte_begin, byte_end }: WeightTensor) {
  const numel = shape.reduce((product, size) => product * size, 1);
  return { param, begin, end: begin + (byte_end - byte_begin) / ELEMENT_BYTES[dtype], numel };
}

export function modelFileKey(modelId: string, file: string): string {
  return `${modelKey(modelId)}/${file}`;
}

/** Optimizer state of a model besides its tensors. */
export interface OptimizerProgress {
  /** Updates done. */
  steps: number;
  /** State of a dynamic loss scaler; null without one. */
  loss_scaler: Manifest['loss_scaler'] | null;
}

/** @param optimizer null without an optimizer state */
export function encodeWeights(
  files: readonly WeightsFile[],
  optimizer: OptimizerProgress | null = null,
): Buffer {
  const progress = optimizer && {
    optimizer_steps: optimizer.steps,
    ...(optimizer.loss_scaler && { loss_scaler: optimizer.loss_scaler }),
  };
  return Buffer.from(`${JSON.stringify({ format_version: 1, ...progress, files })}\n`);
}

/** @throws ZerofleetError `model_corrupt` when it was not written by `encodeWeights` */
export function parseWeights(bytes: Uint8Array): ModelWeights {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (error) {
    throw corrupt(`is not JSON: ${(error as Error).message}`);
  }
  if (!documents.fits(value)) throw corrupt(`is malformed: ${documents.problems().join('; ')}`);
  for (const { file, bytes: fileBytes, tensors } of value.files) {
    for (const tensor of tensors) {
      const { param, begin, end, numel } = elementsOf(tensor);
      const fits = tensor.begin === undefined ? end === numel : Number.isInteger(end) && end <= numel;
      if (tensor.byte_end > fileBytes || begin > end || !fits)
        throw corrupt(`says that ${param} is where it can't be in ${file}`);
    }
  }
  return value;
}

function corrupt(problem: string): ZerofleetError {
  return new ZerofleetError('model_corrupt', `${WEIGHTS_FILE} ${problem}`);
}
