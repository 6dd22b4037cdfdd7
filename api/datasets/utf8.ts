import { isUtf8 } from 'node:buffer';

/** Longest UTF-8 sequence, in bytes. */
const MAX_SEQUENCE = 4;

/**
 * Checks that a text which arrives in pieces is UTF-8. A character may be cut by the border of two pieces: up to three
 * bytes of an unfinished one are kept and put before the next piece.
 */
export class Utf8Validator {
  #unfinished: Uint8Array = new Uint8Array(0);
  /** Bytes of the text before `#unfinished`. */
  #position = 0;

  /**
   * Takes the next piece.
   * @returns the position in bytes, from the start of the text, of the first character that is not UTF-8; null when all is well
   */
  push(piece: Uint8Array): number | null {
    const bytes = this.#unfinished.length === 0 ? piece : Buffer.concat([this.#unfinished, piece]);
    const whole = bytes.subarray(0, bytes.length - unfinishedLength(bytes));
    if (!isUtf8(whole)) return this.#position + firstInvalid(whole);
    // A copy: the piece is the network's buffer, and will be used again.
    this.#unfinished = Uint8Array.from(bytes.subarray(whole.length));
    this.#position += whole.length;
    return null;
  }

  /** Ends the text. @returns the position of a character that was cut off at the very end; null when there is none */
  end(): number | null {
    return this.#unfinished.length === 0 ? null : this.#position;
  }
}

/** Bytes at the end that begin a sequence which is longer than what is there, 0 to 3. */
function unfinishedLength(bytes: Uint8Array): number {
  for (let back = 1; back < MAX_SEQUENCE && back <= bytes.length; back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isContinuation(byte)) continue;
    return sequenceLength(byte) > back ? back : 0;
  }
  return 0;
}

/** Length in bytes of the sequence that a first byte announces; 0 for a byte that cannot be first. */
function sequenceLength(first: number): number {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  if (first >= 0xf0 && first < 0xf5) return 4;
  return 0;
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/** Index of the first sequence that is not valid. Only called for bytes that are known to have one. */
function firstInvalid(bytes: Uint8Array): number {
  let index = 0;
  while (index < bytes.length) {
    const length = sequenceLength(bytes[index] ?? 0);
    if (length === 0 || !isUtf8(bytes.subarray(index, index + length))) return index;
    index += length;
  }
  return index;
}
