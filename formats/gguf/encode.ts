/** Data of GGUF tensors from fp32 elements, with constant memory except for transposed matrices. */
import { TENSOR_TYPES, type TensorType } from './file.js';
import type { PlannedTensor } from './tensors.js';

const FP32_BYTES = 4;
/** Elements that are encoded at a time. */
const PIECE_ELEMENTS = 1 << 16;

type Cast = (dtype: 'bf16' | 'fp16', fp32: Uint8Array) => Uint8Array;

/**
 * Encodes a tensor.
 * @param elements those of its parameters in order, in pieces of any length
 * @param cast rounds to nearest even
 */
export async function* encodeTensor(
  tensor: Pick<PlannedTensor, 'shape' | 'type' | 'layout' | 'headRows'> & Partial<PlannedTensor>,
  elements: AsyncIterable<Uint8Array>,
  cast: Cast,
): AsyncGenerator<Uint8Array> {
  for await (const piece of chunks(laidOut(tensor, elements), PIECE_ELEMENTS * FP32_BYTES))
    yield encoded(tensor.type, tensor.offset ? moved(piece, tensor.offset) : piece, cast);
}

function moved(fp32: Uint8Array, offset: number): Uint8Array {
  return new Uint8Array(floatsOf(fp32).map((value) => value + offset).buffer);
}

function encoded(type: TensorType, fp32: Uint8Array, cast: Cast): Uint8Array {
  switch (type) {
    case 'F32':
      return fp32;
    case 'F16':
      return cast('fp16', fp32);
    case 'BF16':
      return cast('bf16', fp32);
    case 'Q8_0':
      return quantized(floatsOf(fp32), cast);
  }
}

/**
 * Quantizes blocks of 32 elements: the scale max |x| / 127 in fp16, then round(x / scale) of each, halves away from
 * zero. Each operation is rounded to fp32, as in ggml's reference.
 */
function quantized(values: Float32Array, cast: Cast): Uint8Array {
  const { elements, bytes } = TENSOR_TYPES.Q8_0;
  const blocks = values.length / elements;
  const scales = new Float32Array(blocks);
  const result = new Uint8Array(blocks * bytes);
  for (let block = 0; block < blocks; block++) {
    const begin = block * elements;
    let largest = 0;
    for (let i = begin; i < begin + elements; i++) largest = Math.max(largest, Math.abs(values[i] as number));
    const scale = Math.fround(largest / 127);
    scales[block] = scale;
    const inverse = scale === 0 ? 0 : Math.fround(1 / scale);
    for (let i = 0; i < elements; i++) {
      const value = Math.fround((values[begin + i] as number) * inverse);
      result[block * bytes + 2 + i] = value < 0 ? -Math.floor(0.5 - value) : Math.floor(value + 0.5);
    }
  }
  const halves = cast('fp16', new Uint8Array(scales.buffer));
  for (let block = 0; block < blocks; block++)
    result.set(halves.subarray(2 * block, 2 * block + 2), block * bytes);
  return result;
}

function laidOut(
  { shape, layout, headRows }: Pick<PlannedTensor, 'shape' | 'layout' | 'headRows'>,
  elements: AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  if (layout === 'rows') return elements;
  if (layout === 'transposed') return transposed(shape, elements);
  const columns = shape[1] ?? 1;
  return layout === 'paired'
    ? paired(headRows, columns, elements)
    : byKind(headRows * columns * FP32_BYTES, elements);
}

async function* paired(
  rows: number,
  columns: number,
  elements: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const rowBytes = columns * FP32_BYTES;
  for await (const head of chunks(elements, rows * rowBytes)) {
    const result = new Uint8Array(head.length);
    for (let row = 0; row < rows; row++) {
      const from = row % 2 === 0 ? row / 2 : (rows + row - 1) / 2;
      result.set(head.subarray(from * rowBytes, (from + 1) * rowBytes), row * rowBytes);
    }
    yield result;
  }
}

/** @param headBytes of the queries, the keys or the values of a head, which are in that order for each head */
async function* byKind(headBytes: number, elements: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of chunks(elements, headBytes)) pieces.push(piece);
  for (const kind of [0, 1, 2]) yield* pieces.filter((_, index) => index % 3 === kind);
}

/** @param shape (out, in) of the result */
async function* transposed(
  [out = 0, inner = 0]: readonly number[],
  elements: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of elements) pieces.push(piece);
  const values = floatsOf(Buffer.concat(pieces));
  for (let row = 0; row < out; row++) {
    const result = new Float32Array(inner);
    for (let column = 0; column < inner; column++) result[column] = values[column * out + row] as number;
    yield new Uint8Array(result.buffer);
  }
}

/** Yields the same bytes in pieces of `bytes`; the last one may be shorter. */
async function* chunks(pieces: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  let kept: Uint8Array[] = [];
  let length = 0;
  for await (const piece of pieces) {
    let rest = piece;
    while (length + rest.length >= bytes) {
      const end = bytes - length;
      yield Buffer.concat([...kept, rest.subarray(0, end)]);
      rest = rest.subarray(end);
      kept = [];
      length = 0;
    }
    if (rest.length > 0) kept.push(rest);
    length += rest.length;
  }
  if (length > 0) yield Buffer.concat(kept);
}

/** The bytes are copied, because their offset may not be aligned. */
function floatsOf(bytes: Uint8Array): Float32Array {
  return new Float32Array(Uint8Array.from(bytes).buffer);
}
