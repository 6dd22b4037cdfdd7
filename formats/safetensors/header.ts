/**
 * Header of the safetensors format (https://github.com/huggingface/safetensors#format): the length of the
 * JSON as 64-bit little-endian, the JSON, then the data. Tensor data is never held here.
 */
import { ZerofleetError } from '../../contracts/index.js';

/** Bytes of one element by dtype. */
export const ELEMENT_BYTES = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  F8_E4M3: 1,
  F8_E5M2: 1,
  U16: 2,
  I16: 2,
  F16: 2,
  BF16: 2,
  U32: 4,
  I32: 4,
  F32: 4,
  U64: 8,
  I64: 8,
  F64: 8,
} as const;

export type SafetensorsDtype = keyof typeof ELEMENT_BYTES;

/** Tensor of a safetensors file. */
export interface HeaderTensor {
  name: string;
  dtype: SafetensorsDtype;
  shape: readonly number[];
  /** Bytes `[begin, end)` after the header. */
  begin: number;
  end: number;
}

export interface SafetensorsHeader {
  /** Bytes before the data: the length field and the JSON with its padding. */
  bytes: number;
  metadata: Record<string, string>;
  /** In the order of the data. */
  tensors: HeaderTensor[];
}

export const LENGTH_BYTES = 8;
/** Several times the JSON of a file with 100,000 tensors; the reference implementation accepts 100 MB. */
export const MAX_JSON_BYTES = 32 * 1024 * 1024;
/** Readers map the file into memory; data that begins at a multiple of this needs no copy. */
const ALIGNMENT_BYTES = 8;
/** Names are untrusted text, so messages truncate them. */
const SHOWN_NAME = 200;

/**
 * Encodes length and JSON of a file.
 * @param tensors in the order of their data, without gaps
 * @param alignmentBytes multiple of 8 at a multiple of which the data begins
 * @throws ZerofleetError `safetensors_invalid`
 */
export function safetensorsHeader(
  tensors: readonly HeaderTensor[],
  metadata: Record<string, string>,
  alignmentBytes = ALIGNMENT_BYTES,
): Buffer {
  checkTensors(tensors, 'safetensors');
  const entries = tensors.map(({ name, dtype, shape, begin, end }) => [
    name,
    { dtype, shape, data_offsets: [begin, end] },
  ]);
  const json = Buffer.from(JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) }));
  const bytes = Math.ceil((LENGTH_BYTES + json.length) / alignmentBytes) * alignmentBytes;
  const header = Buffer.alloc(bytes, ' ');
  header.writeBigUInt64LE(BigInt(bytes - LENGTH_BYTES), 0);
  json.copy(header, LENGTH_BYTES);
  return header;
}

/**
 * Checks the rules of the format: every tensor has the length of its shape, tensors are contiguous, names are
 * unique.
 * @param tensors sorted by their first byte
 * @throws ZerofleetError `safetensors_invalid`
 */
export function checkTensors(tensors: readonly HeaderTensor[], file: string): void {
  let position = 0;
  const names = new Set<string>();
  for (const { name, dtype, shape, begin, end } of tensors) {
    const fail = (problem: string) => malformed(file, problem, name);
    const numel = shape.reduce((product, size) => product * size, 1);
    const bytes = numel * ELEMENT_BYTES[dtype];
    if (!Number.isSafeInteger(bytes)) throw fail(`has an impossible shape [${shape}]`);
    if (end - begin !== bytes) throw fail(`has ${end - begin} bytes for ${numel} elements of ${dtype}`);
    if (begin < position) throw fail(`begins at byte ${begin}, inside of a tensor that ends at ${position}`);
    if (begin > position) throw fail(`begins at byte ${begin}, after a gap from ${position} on`);
    if (names.has(name) || name === '__metadata__') throw fail('occurs twice');
    names.add(name);
    position = end;
  }
}

/** @param tensor name of the malformed tensor; absent for a problem of the whole file */
export function malformed(file: string, problem: string, tensor?: string): ZerofleetError {
  const subject = tensor === undefined ? '' : `tensor ${JSON.stringify(tensor.slice(0, SHOWN_NAME))} `;
  return new ZerofleetError('safetensors_invalid', `${file}: ${subject}${problem}`, {
    details: { file, ...(tensor === undefined ? {} : { tensor: tensor.slice(0, SHOWN_NAME) }) },
  });
}
