import { isUtf8 } from 'node:buffer';

/** Longest UTF-8 sequence, in bytes. */
const MAX_SEQUENCE = 4;

/**
 * Checks that text arriving in pieces is UTF-8. A character may be split between two pieces: up to three bytes of an
 * incomplete character are kept and prepended to the next piece.
 */
export class Utf8Validator {
  private unfinished: Uint8Array = new Uint8Array(0);
  /** Bytes of the text before `#unfinished`. */
  private position = 0;

  /**
   * Checks the next piece.
   * @returns the byte position, from the start of the text, of the first invalid character; null if there is none
   */
  push(piece: Uint8Array): number | null {
    const bytes = this.unfinished.length === 0 ? piece : Buffer.concat([this.unfinished, piece]);
    const whole = bytes.subarray(0, bytes.length - unfinishedLength(bytes));
    if (!isUtf8(whole)) return this.position + firstInvalid(whole);
    // A copy: the network reuses the piece's buffer.
    this.unfinished = Uint8Array.from(bytes.subarray(whole.length));
    this.position += whole.length;
    return null;
  }

  /** Ends the text. @returns the position of an incomplete last character; null if there is none */
  end(): number | null {
    return this.unfinished.length === 0 ? null : this.position;
  }
}

/** Number of trailing bytes that begin an incomplete sequence, 0 to 3. */
function unfinishedLength(bytes: Uint8Array): number {
  for (let back = 1; back < MAX_SEQUENCE && back <= bytes.length; back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isContinuation(byte)) continue;
    return sequenceLength(byte) > back ? back : 0;
  }
  return 0;
}

/** Sequence length in bytes from its first byte; 0 for a byte that cannot be first. */
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

/** Index of the first invalid sequence. The bytes must contain one. */
function firstInvalid(bytes: Uint8Array): number {
  let index = 0;
  while (index < bytes.length) {
    const length = sequenceLength(bytes[index] ?? 0);
    if (length === 0 || !isUtf8(bytes.subarray(index, index + length))) return index;
    index += length;
  }
  return index;
}
