/** Frames of graders/python/serve.py: a length in 4 bytes, big endian, and JSON. */

const HEAD_BYTES = 4;
/** Length of the longest frame, above that of a grade's output. */
const MAX_FRAME_BYTES = 8 * 1024 * 1024;

export function frameOf(value: unknown): Buffer {
  const body = Buffer.from(JSON.stringify(value));
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(body.length);
  return Buffer.concat([head, body]);
}

/** Joins pieces of a stream to frames. */
export class FrameReader {
  private pieces: Buffer[] = [];
  private bytes = 0;

  /** Returns the text of the next frame; null while it is incomplete. @throws Error for a frame that is too long */
  add(piece: Buffer): string | null {
    this.pieces.push(piece);
    this.bytes += piece.length;
    if (this.bytes < HEAD_BYTES) return null;
    if ((this.pieces[0] as Buffer).length < HEAD_BYTES) this.pieces = [Buffer.concat(this.pieces)];
    const length = (this.pieces[0] as Buffer).readUInt32BE();
    if (length > MAX_FRAME_BYTES) throw new Error(`a frame of ${length} bytes`);
    if (this.bytes < HEAD_BYTES + length) return null;
    const all = Buffer.concat(this.pieces);
    this.pieces = [all.subarray(HEAD_BYTES + length)];
    this.bytes -= HEAD_BYTES + length;
    return all.toString('utf8', HEAD_BYTES, HEAD_BYTES + length);
  }
}
