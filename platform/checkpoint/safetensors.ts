/**
 * The header of the safetensors format (https://github.com/huggingface/safetensors#format): the length of the
 * JSON as 64-bit little-endian, the JSON, then the data. Only what checkpoints and exports need: no tensor is
 * ever held here.
 */
import { ZerofleetError } from '../../contracts/index.js';

export type SafetensorsDtype = 'F32' | 'BF16';

/** A tensor of a safetensors file. */
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
/** Readers map the file into memory; data that begins at a multiple of this needs no copy. */
const ALIGNMENT = 8;
/** What the reference implementation accepts. */
const MAX_JSON_BYTES = 100_000_000;
const ELEMENT_BYTES: Readonly<Record<SafetensorsDtype, number>> = { F32: 4, BF16: 2 };

/**
 * Length and JSON of a file.
 * @param tensors in the order of their data, without gaps
 */
export function safetensorsHeader(
  tensors: readonly HeaderTensor[],
  metadata: Record<string, string>,
): Buffer {
  checkTensors(tensors);
  const entries = tensors.map(({ name, dtype, shape, begin, end }) => [
    name,
    { dtype, shape, data_offsets: [begin, end] },
  ]);
  const json = Buffer.from(JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) }));
  const padded = Math.ceil(json.length / ALIGNMENT) * ALIGNMENT;
  const header = Buffer.alloc(LENGTH_BYTES + padded, ' ');
  header.writeBigUInt64LE(BigInt(padded), 0);
  json.copy(header, LENGTH_BYTES);
  return header;
}

/**
 * How many bytes `parseSafetensorsHeader` needs.
 * @param start at least the first 8 bytes of a file
 */
export function safetensorsHeaderBytes(start: Uint8Array): number {
  if (start.length < LENGTH_BYTES) throw malformed('the file has no length field');
  const length = Buffer.from(start.buffer, start.byteOffset, LENGTH_BYTES).readBigUInt64LE();
  if (length > MAX_JSON_BYTES) throw malformed(`a header of ${length} bytes`);
  return LENGTH_BYTES + Number(length);
}

/**
 * Reads and checks a header.
 * @param start the first bytes of a file, at least `safetensorsHeaderBytes` of them
 * @throws ZerofleetError `shard_corrupt`
 */
export function parseSafetensorsHeader(start: Uint8Array): SafetensorsHeader {
  const bytes = safetensorsHeaderBytes(start);
  if (start.length < bytes) throw malformed(`the header has ${bytes} bytes, ${start.length} were given`);
  const { __metadata__: metadata, ...entries } = parseJson(start.subarray(LENGTH_BYTES, bytes));
  const tensors = Object.entries(entries).map(([name, entry]) => tensorOf(name, entry));
  tensors.sort((a, b) => a.begin - b.begin || a.end - b.end);
  checkTensors(tensors);
  return { bytes, metadata: (metadata ?? {}) as Record<string, string>, tensors };
}

function parseJson(json: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(json));
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch (error) {
    throw malformed(`the header is not JSON: ${(error as Error).message}`);
  }
  throw malformed('the header is no JSON object');
}

function tensorOf(name: string, entry: unknown): HeaderTensor {
  const { dtype, shape, data_offsets: offsets } = (entry ?? {}) as Record<string, unknown>;
  const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
  const known = typeof dtype === 'string' && Object.hasOwn(ELEMENT_BYTES, dtype);
  const shaped = Array.isArray(shape) && shape.every(isCount);
  if (!known || !shaped || !Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount)) {
    throw malformed(`tensor ${name} has no dtype, shape and offsets that can be read here`);
  }
  const [begin, end] = offsets as [number, number];
  return { name, dtype: dtype as SafetensorsDtype, shape, begin, end };
}

/** The format's own rules: every tensor as long as its shape says, one after the other, no name twice. */
function checkTensors(tensors: readonly HeaderTensor[]): void {
  let position = 0;
  const names = new Set<string>();
  for (const { name, dtype, shape, begin, end } of tensors) {
    const numel = shape.reduce((product, size) => product * size, 1);
    if (end - begin !== numel * ELEMENT_BYTES[dtype]) {
      throw malformed(`tensor ${name} has ${end - begin} bytes for ${numel} elements of ${dtype}`);
    }
    if (begin !== position) throw malformed(`tensor ${name} begins at byte ${begin}, not at ${position}`);
    if (names.has(name) || name === '__metadata__') throw malformed(`the name ${name} cannot be used again`);
    names.add(name);
    position = end;
  }
}

function malformed(message: string): ZerofleetError {
  return new ZerofleetError('shard_corrupt', `safetensors: ${message}`);
}
