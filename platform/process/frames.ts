/** Messages on a byte stream: length (four bytes, big-endian), then that many bytes of JSON. */
import { ZerofleetError } from '../../contracts/index.js';

const LENGTH_BYTES = 4;

export function encodeFrame(message: unknown): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(LENGTH_BYTES);
  head.writeUInt32BE(body.length);
  return Buffer.concat([head, body]);
}

/** Splits a stream into its messages. */
export class FrameReader {
  private readonly chunks: Buffer[] = [];
  private buffered = 0;

  /** @param limit maximum message size in bytes; may be raised once the sender is authenticated */
  constructor(public limit: number) {}

  push(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.buffered += chunk.length;
  }

  /**
   * Returns the next message, or undefined while it is incomplete.
   * @throws ZerofleetError `link_protocol` when it is too large, as soon as its length is known, or not JSON
   */
  next(): unknown {
    if (this.buffered < LENGTH_BYTES) return undefined;
    const length = this.peek(LENGTH_BYTES).readUInt32BE();
    if (length > this.limit) {
      throw new ZerofleetError(
        'link_protocol',
        `a message of ${length} bytes; at most ${this.limit} are taken`,
      );
    }
    if (this.buffered < LENGTH_BYTES + length) return undefined;
    const bytes = this.peek(LENGTH_BYTES + length);
    this.skip(LENGTH_BYTES + length);
    try {
      return JSON.parse(bytes.toString('utf8', LENGTH_BYTES));
    } catch {
      throw new ZerofleetError('link_protocol', 'a message is no JSON');
    }
  }

  private peek(bytes: number): Buffer {
    const [first = Buffer.alloc(0)] = this.chunks;
    if (first.length >= bytes) return first.subarray(0, bytes);
    const all = Buffer.concat(this.chunks);
    this.chunks.splice(0, this.chunks.length, all);
    return all.subarray(0, bytes);
  }

  private skip(bytes: number): void {
    const [first = Buffer.alloc(0)] = this.chunks;
    this.buffered -= bytes;
    if (first.length === bytes) this.chunks.shift();
    else this.chunks[0] = first.subarray(bytes);
  }
}
