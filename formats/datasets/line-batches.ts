import { badLine, MAX_LINE_BYTES } from '../../contracts/jsonl/line.js';

/** Whole lines of a JSONL dataset. */
export interface LineBatch {
  bytes: Uint8Array;
  /** Number of the first line, from 1. */
  first_line: number;
}

/** Large enough that passing a batch to a thread is cheap compared with reading it. */
const WANTED_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

export const LINE_TOO_LONG = `it has more than ${MAX_LINE_BYTES} bytes; split the document`;

/**
 * Collects whole lines. The batch boundaries depend on the pieces of the body; no result may depend on them.
 */
export class LineBatcher {
  private pieces: Uint8Array[] = [];
  private pending = 0;
  private firstLine = 1;

  constructor(private readonly wanted = WANTED_BYTES) {}

  /**
   * Returns the whole lines once there are enough of them.
   * @param piece is kept
   * @throws ZerofleetError `dataset_line_invalid` for a line that is too long
   */
  push(piece: Uint8Array): LineBatch | null {
    this.pieces.push(piece);
    this.pending += piece.length;
    if (this.pending < this.wanted) return null;
    const bytes = Buffer.concat(this.pieces);
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    this.pieces = [bytes.subarray(end)];
    this.pending = bytes.length - end;
    if (this.pending > MAX_LINE_BYTES)
      throw badLine(this.firstLine + numLines(bytes.subarray(0, end)), LINE_TOO_LONG);
    if (end === 0) return null;
    const batch = { bytes: bytes.subarray(0, end), first_line: this.firstLine };
    this.firstLine += numLines(batch.bytes);
    return batch;
  }

  /** Returns the remaining lines; null if there are none. */
  end(): LineBatch | null {
    if (this.pending === 0) return null;
    return { bytes: Buffer.concat(this.pieces), first_line: this.firstLine };
  }
}

/**
 * Yields the batches of a body.
 * @throws as `LineBatcher.push`; errors of the body
 */
export async function* lineBatches(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  wanted = WANTED_BYTES,
): AsyncGenerator<LineBatch> {
  const batcher = new LineBatcher(wanted);
  for await (const piece of body) {
    const batch = batcher.push(piece);
    if (batch !== null) yield batch;
  }
  const last = batcher.end();
  if (last !== null) yield last;
}

function numLines(bytes: Uint8Array): number {
  let lines = 0;
  // Searching each newline would be slow where every byte is one.
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === NEWLINE) lines++;
  return lines;
}
