import { randomFillSync } from 'node:crypto';
import { ulid } from 'ulid';

/** Buffer of random bytes. A system call for each id would dominate its cost. */
const random = Buffer.alloc(4096);
let used = random.length;

/** Returns n random bytes; they are the caller's until the next call. */
export function randomPiece(bytes: number): Buffer {
  if (used + bytes > random.length) {
    randomFillSync(random);
    used = 0;
  }
  used += bytes;
  return random.subarray(used - bytes, used);
}

/**
 * Returns a ULID. The library alone makes a system call for each of its sixteen random letters.
 * @param at ms since 1970; now by default
 */
export function newUlid(at?: number): string {
  return ulid(at, () => randomPiece(1).readUInt8() / 256);
}
