import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import {
  type ResolvedJobSpec,
  type TensorState,
  type TensorValues,
  ZerofleetError,
} from '../../contracts/index.js';
import { isMoment } from '../../contracts/state-records.js';
import { BYTES_PER_ELEMENT } from '../../formats/checkpoint/shard-contents.js';
import { parseSafetensorsHeader, safetensorsHeaderBytes } from '../../formats/safetensors/read-header.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';

/** The header of a file with one tensor. */
const MAX_HEADER_BYTES = 64 * 1024;
/** Bytes that are checked between two turns of the event loop. */
const PIECE_BYTES = 1 << 20;

/** The tensor that the values replace. */
export interface ReplacedTensor {
  name: string;
  state: TensorState;
  shape: readonly number[];
  precision: ResolvedJobSpec['train']['precision'];
}

/** Smallest magnitudes that become infinite when they are rounded to the precision. */
const LIMITS = { fp32: Number.POSITIVE_INFINITY, bf16: 2 ** 128 - 2 ** 119, fp16: 65520 } as const;

/**
 * Stores the values of a safetensors file with one tensor, which are checked while they arrive.
 * @returns SHA-256 of the values
 * @throws ZerofleetError `safetensors_invalid`, `tensor_invalid`; errors of the object store and of the body. The
 *   caller then removes the object.
 */
export async function receiveTensor(
  objects: ObjectStore,
  key: string,
  body: AsyncIterable<Uint8Array>,
  tensor: ReplacedTensor,
): Promise<TensorValues> {
  const bytes = tensor.shape.reduce((product, size) => product * size, BYTES_PER_ELEMENT);
  const hash = createHash('sha256');
  const checked = async function* () {
    let received = 0;
    for await (const piece of wholeElements(afterHeader(body, tensor, bytes))) {
      received += piece.length;
      if (received > bytes) break;
      checkValues(piece, tensor);
      hash.update(piece);
      yield piece;
    }
    if (received !== bytes)
      throw invalid(
        `the file has ${received > bytes ? 'more' : 'fewer'} values than the shape [${tensor.shape}]`,
      );
  };
  await objects.put(key, checked(), { bytes });
  return { key, sha256: hash.digest('hex') };
}

/** Yields what follows the header. */
async function* afterHeader(
  body: AsyncIterable<Uint8Array>,
  tensor: ReplacedTensor,
  dataBytes: number,
): AsyncGenerator<Uint8Array> {
  let start: Buffer | null = Buffer.alloc(0);
  for await (const piece of body) {
    if (start === null) {
      yield piece;
      continue;
    }
    start = Buffer.concat([start, piece]);
    if (start.length < 8) continue;
    const headerBytes = safetensorsHeaderBytes(start);
    if (headerBytes > MAX_HEADER_BYTES)
      throw invalid(
        `the header has ${headerBytes} bytes, more than the ${MAX_HEADER_BYTES} of a file with one tensor`,
      );
    if (start.length < headerBytes) continue;
    checkHeader(start.subarray(0, headerBytes), tensor, headerBytes + dataBytes);
    yield start.subarray(headerBytes);
    start = null;
  }
  if (start !== null) throw invalid(`the file ends after ${start.length} bytes, inside of its header`);
}

function checkHeader(start: Buffer, { name, shape }: ReplacedTensor, fileBytes: number): void {
  const { tensors } = parseSafetensorsHeader(start, { name: 'the file' });
  const [tensor, ...others] = tensors;
  if (tensor === undefined || others.length > 0)
    throw invalid(`the file has ${tensors.length} tensors; send one file with one tensor`);
  if (tensor.name !== name)
    throw invalid(`the file has the tensor ${JSON.stringify(tensor.name.slice(0, 200))} instead of ${name}`);
  if (tensor.dtype !== 'F32') throw invalid(`${name} is ${tensor.dtype} in the file; convert it to F32`);
  if (String(tensor.shape) !== String(shape))
    throw invalid(`${name} has the shape [${tensor.shape}] in the file and [${shape}] in the checkpoint`);
  if (start.length + tensor.end !== fileBytes) throw invalid('the file is longer than its tensor');
}

/** Yields pieces of whole elements, each in memory of its own, and lets other requests run in between. */
async function* wholeElements(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let left = new Uint8Array();
  for await (const piece of pieces) {
    const bytes = new Uint8Array(left.length + piece.length);
    bytes.set(left);
    bytes.set(piece, left.length);
    const whole = bytes.length - (bytes.length % BYTES_PER_ELEMENT);
    for (let at = 0; at < whole; at += PIECE_BYTES) {
      if (at > 0) await setImmediate();
      yield bytes.subarray(at, Math.min(whole, at + PIECE_BYTES));
    }
    left = bytes.slice(whole);
  }
  if (left.length > 0) yield left;
}

/** @param bytes of whole elements, at a multiple of their size */
function checkValues(bytes: Uint8Array, { name, state, precision }: ReplacedTensor): void {
  const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / BYTES_PER_ELEMENT);
  const limit = isMoment(state) ? LIMITS.fp32 : LIMITS[precision];
  const least = state === 'exp_avg_sq' || state === 'sum' ? 0 : -limit;
  // A NaN fails both comparisons.
  const bad = values.find((value) => !(value < limit && (value > least || value === 0)));
  if (bad === undefined) return;
  if (!Number.isFinite(bad)) throw invalid(`${name} has the value ${bad}; all values must be finite`);
  if (bad < 0 && least === 0)
    throw invalid(`${name} has the value ${bad}; ${state} is a sum of squares and must not be negative`);
  throw invalid(
    `${name} has the value ${bad}, which is infinite in ${precision}, the precision of the training`,
  );
}

function invalid(message: string): ZerofleetError {
  return new ZerofleetError('tensor_invalid', message);
}
