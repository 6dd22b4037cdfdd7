import { randomFillSync } from 'node:crypto';
import { ulid } from 'ulid';

/** Asked of the system in one piece: for each id by itself that would be most of what an id costs. */
const random = Buffer.alloc(4096);
let used = random.length;

/** So many bytes that nobody had before; they are the caller's until the next call. */
export function randomPiece(bytes: number): Buffer {
  if (used + bytes > random.length) {
    randomFillSync(random);
    used = 0;
  }
  used += bytes;
  return random.subarray(used - bytes, used);
}

/** A ULID. The library alone asks the system for each of its sixteen random letters. */
export function newUlid(): string {
  return ulid(undefined, () => randomPiece(1).readUInt8() / 256);
}
