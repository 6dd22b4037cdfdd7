/** Reads headers of untrusted safetensors files. */

import { type JsonLimits, jsonExcess } from '../../platform/json-limits.js';
import {
  checkTensors,
  ELEMENT_BYTES,
  type HeaderTensor,
  LENGTH_BYTES,
  MAX_JSON_BYTES,
  malformed,
  type SafetensorsDtype,
  type SafetensorsHeader,
} from './header.js';
import { repeatedKey } from './json-keys.js';

/** Known properties of the file. */
export interface SafetensorsFile {
  /** Name in messages. */
  name: string;
  /** Size of the whole file; if given, header and data must fill it exactly. */
  bytes?: number;
}

/** A tensor's name, dtype, shape and offsets are some eight values. */
const JSON_LIMITS: JsonLimits = { depth: 8, values: 2_500_000 };

const SOME_FILE: SafetensorsFile = { name: 'safetensors' };

/**
 * Returns the number of bytes that `parseSafetensorsHeader` needs.
 * @param start at least the first 8 bytes of a file, or the whole file
 * @throws ZerofleetError `safetensors_invalid` for an invalid length
 */
export function safetensorsHeaderBytes(start: Uint8Array, file = SOME_FILE): number {
  if (start.length < LENGTH_BYTES)
    throw malformed(file.name, `ends after ${start.length} bytes, inside of its length field`);
  const length = Buffer.from(start.buffer, start.byteOffset, LENGTH_BYTES).readBigUInt64LE();
  if (length > MAX_JSON_BYTES)
    throw malformed(file.name, `declares a header of ${length} bytes; the maximum is ${MAX_JSON_BYTES}`);
  const bytes = LENGTH_BYTES + Number(length);
  if (file.bytes !== undefined && bytes > file.bytes)
    throw malformed(
      file.name,
      `declares a header of ${length} bytes, but ends after ${file.bytes} bytes in all`,
    );
  return bytes;
}

/**
 * Reads and checks a header.
 * @param start the first bytes of a file, at least `safetensorsHeaderBytes` of them
 * @throws ZerofleetError `safetensors_invalid` naming file and tensor
 */
export function parseSafetensorsHeader(start: Uint8Array, file = SOME_FILE): SafetensorsHeader {
  const bytes = safetensorsHeaderBytes(start, file);
  if (start.length < bytes)
    throw malformed(file.name, `ends after ${start.length} bytes, inside of its header of ${bytes} bytes`);
  const { __metadata__: metadata, ...entries } = parseJson(start.subarray(LENGTH_BYTES, bytes), file.name);
  const tensors = Object.entries(entries).map(([name, entry]) => tensorOf(name, entry, file.name));
  tensors.sort((a, b) => a.begin - b.begin || a.end - b.end);
  checkTensors(tensors, file.name);
  checkSize(file, bytes, tensors.at(-1));
  return { bytes, metadata: metadataOf(metadata, file.name), tensors };
}

function parseJson(json: Uint8Array, file: string): Record<string, unknown> {
  // Required by the format, so that other files are not mistaken for a header.
  if (json[0] !== '{'.charCodeAt(0)) throw malformed(file, 'has a header that is not a JSON object');
  const excess = jsonExcess(json, JSON_LIMITS);
  if (excess !== null) throw malformed(file, `has a header that ${excess}`);
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(json);
    value = JSON.parse(text);
  } catch (error) {
    throw malformed(file, `has a header that is not JSON: ${(error as Error).message.slice(0, 200)}`);
  }
  const twice = repeatedKey(text);
  if (twice !== null) {
    const [tensor, field] = twice;
    throw malformed(file, field === undefined ? 'occurs twice' : `has the field ${field} twice`, tensor);
  }
  return value as Record<string, unknown>;
}

function tensorOf(name: string, entry: unknown, file: string): HeaderTensor {
  const fail = (problem: string) => malformed(file, problem, name);
  if (typeof entry !== 'object' || entry === null) throw fail('has no dtype, shape and offsets');
  const { dtype, shape, data_offsets: offsets } = entry as Record<string, unknown>;
  const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
  if (typeof dtype !== 'string' || !Object.hasOwn(ELEMENT_BYTES, dtype))
    throw fail(`has the dtype ${JSON.stringify(dtype)?.slice(0, 40)}, which is unknown`);
  if (!Array.isArray(shape) || !shape.every(isCount)) throw fail('has no shape of whole numbers');
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount))
    throw fail('has no data_offsets of two whole numbers');
  const [begin, end] = offsets as [number, number];
  if (end < begin) throw fail(`ends at byte ${end}, before it begins at ${begin}`);
  return { name, dtype: dtype as SafetensorsDtype, shape, begin, end };
}

function metadataOf(metadata: unknown, file: string): Record<string, string> {
  if (metadata === undefined) return {};
  const isObject = typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata);
  if (!isObject || !Object.values(metadata).every((value) => typeof value === 'string'))
    throw malformed(file, 'has a __metadata__ that is not an object of strings');
  return metadata as Record<string, string>;
}

/** Checks the file size: missing data is damage, and unused bytes could hide content. */
function checkSize(file: SafetensorsFile, headerBytes: number, last: HeaderTensor | undefined): void {
  if (file.bytes === undefined) return;
  const end = headerBytes + (last?.end ?? 0);
  if (file.bytes < end)
    throw malformed(
      file.name,
      `ends at byte ${end} of the file, but only ${file.bytes} bytes are there`,
      last?.name,
    );
  if (file.bytes > end) throw malformed(file.name, `has ${file.bytes - end} bytes after its last tensor`);
}
