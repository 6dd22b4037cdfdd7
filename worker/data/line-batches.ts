import { badLine, MAX_LINE_BYTES } from '../../contracts/jsonl.js';

/** Some whole lines of a JSONL dataset. */
export interface LineBatch {
  bytes: Uint8Array;
  /** Number of the first of them, from 1. */
  first_line: number;
}

/** Large enough that handing a batch to a thread costs little beside encoding it. */
const WANTED_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

/**
 * Gathers whole lines. How many of them come together depends on the pieces of the body; nothing may follow from it.
 * @throws ZerofleetError `dataset_bad_line` for a line that is too long
 */
export async function* lineBatches(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  wanted = WANTED_BYTES,
): AsyncGenerator<LineBatch> {
  let pieces: Uint8Array[] = [];
  let pending = 0;
  let first_line = 1;
  for await (const piece of body) {
    pieces.push(piece);
    pending += piece.length;
    if (pending < wanted) continue;
    const bytes = Buffer.concat(pieces);
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      const batch = { bytes: bytes.subarray(0, end), first_line };
      first_line += numLines(batch.bytes);
      yield batch;
    } else if (pending > MAX_LINE_BYTES) {
      throw badLine(first_line, `it has more than ${MAX_LINE_BYTES} bytes; split the document`);
    }
    pieces = [bytes.subarray(end)];
    pending = bytes.length - end;
  }
  if (pending > 0) yield { bytes: Buffer.concat(pieces), first_line };
}

function numLines(bytes: Uint8Array): number {
  let lines = 0;
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) lines++;
  return lines;
}
