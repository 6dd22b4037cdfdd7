import { BYTES_PER_ELEMENT, CHUNK_BYTES } from '../../platform/checkpoint/manifest.js';
import type { PlannedRead } from '../../platform/checkpoint/read-plan.js';
/** One request to the object store: bytes without a gap inside one checksum chunk, and what they hold. */
export interface Fetch {
  file: string;
  begin: number;
  end: number;
  pieces: PlannedRead[];
}

/**
 * Cuts planned reads at the borders of the checksum chunks and joins neighbours, so that the requests are long and none
 * holds bytes of two checksums. Expects the reads in order of file and byte; each byte stays in exactly one fetch.
 */
export function planFetches(reads: readonly PlannedRead[]): Fetch[] {
  const fetches: Fetch[] = [];
  for (const piece of reads.flatMap(cutAtChunks)) {
    const { file, byte_begin, byte_end } = piece;
    const last = fetches.at(-1);
    const joins = last?.file === file && last.end === byte_begin && byte_begin % CHUNK_BYTES !== 0;
    if (last && joins) {
      last.pieces.push(piece);
      last.end = byte_end;
    } else {
      fetches.push({ file, begin: byte_begin, end: byte_end, pieces: [piece] });
    }
  }
  return fetches;
}

/** Chunks begin at multiples of 4 bytes, and so do elements: no cut goes through one. */
function cutAtChunks(read: PlannedRead): PlannedRead[] {
  const pieces: PlannedRead[] = [];
  for (let at = read.byte_begin; at < read.byte_end; ) {
    const end = Math.min(read.byte_end, (Math.floor(at / CHUNK_BYTES) + 1) * CHUNK_BYTES);
    pieces.push({
      ...read,
      byte_begin: at,
      byte_end: end,
      begin: read.begin + (at - read.byte_begin) / BYTES_PER_ELEMENT,
    });
    at = end;
  }
  return pieces;
}
