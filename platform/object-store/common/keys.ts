import { ObjectStoreError } from './errors.js';
import type { ByteRange } from './port.js';

const MAX_KEY_LENGTH = 700;
// ASCII only, without empty, '.' and '..' segments. Such a key has the same bytes on every file system and in every
// URL, sorts alike everywhere, and cannot leave a directory. A leading dot is reserved for the stores' own files.
const KEY = /^[A-Za-z0-9_=-][A-Za-z0-9._=-]*(?:\/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*$/;
const PREFIX = /^[A-Za-z0-9._=/-]*$/;

export function isKey(key: string): boolean {
  return key.length <= MAX_KEY_LENGTH && KEY.test(key);
}

/** @throws ObjectStoreError `invalid_key` */
export function checkKey(key: string): void {
  if (!isKey(key)) {
    throw new ObjectStoreError('invalid_key', `${JSON.stringify(key.slice(0, 100))} is not an object key`);
  }
}

/** Checks a prefix: the beginning of a key, possibly within a segment, or empty for all keys. */
export function checkPrefix(prefix: string): void {
  const segments = prefix.split('/').slice(0, -1);
  if (!PREFIX.test(prefix) || segments.some((segment) => segment === '' || segment.startsWith('.'))) {
    throw new ObjectStoreError('invalid_key', `${JSON.stringify(prefix.slice(0, 100))} is not a key prefix`);
  }
}

/** @throws ObjectStoreError `invalid_argument` for a range that could fit no object */
export function checkRange(range: ByteRange): void {
  const { begin, end } = range;
  if (!Number.isSafeInteger(begin) || !Number.isSafeInteger(end) || begin < 0 || end < begin) {
    throw new ObjectStoreError('invalid_argument', `[${begin}, ${end}) is not a byte range`);
  }
}

export function rangeError(key: string, range: ByteRange, bytes: number | null): ObjectStoreError {
  const problem = bytes === null ? 'is shorter than' : `has ${bytes} bytes, fewer than`;
  return new ObjectStoreError('invalid_range', `${key} ${problem} the end of [${range.begin}, ${range.end})`);
}
