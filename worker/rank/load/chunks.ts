import { crc32c } from '@node-rs/crc32';
import type { RangeChecksum } from '../../../contracts/rank-protocol.js';
import { CHUNK_BYTES, hexCrc } from '../../../formats/checkpoint/manifest.js';
import { BYTES_PER_ELEMENT } from '../../../formats/checkpoint/shard-contents.js';

/** Bytes `[byte_begin, byte_end)` of a file: elements of one tensor from `begin` on. */
export interface StoredRun {
  file: string;
  byte_begin: number;
  byte_end: number;
  /** The first element. */
  begin: number;
}

/** Request to the object store: contiguous bytes that begin inside one checksum chunk, with their pieces. */
export interface Fetch<Run extends StoredRun> {
  file: string;
  begin: number;
  end: number;
  pieces: Run[];
}

/**
 * Splits planned reads at the borders of checksum chunks and joins adjacent ones, so that requests are long and begin
 * and end at an element. If an element crosses a border, as in files of other programs, the request ends after that
 * element. Expects the reads in order of file and byte; each byte is in exactly one fetch.
 */
export function* planFetches<Run extends StoredRun>(
  reads: Iterable<Run>,
  elementBytes: (read: Run) => number = () => BYTES_PER_ELEMENT,
): Generator<Fetch<Run>> {
  let last: Fetch<Run> | undefined;
  for (const read of reads) {
    for (const piece of cutAtChunks(read, elementBytes(read))) {
      const { file, byte_begin, byte_end } = piece;
      if (last?.file === file && last.end === byte_begin && chunkOf(last.begin) === chunkOf(byte_begin)) {
        last.pieces.push(piece);
        last.end = byte_end;
      } else {
        if (last) yield last;
        last = { file, begin: byte_begin, end: byte_end, pieces: [piece] };
      }
    }
  }
  if (last) yield last;
}

/** Returns the checksums of a fetch, one for each chunk that it has bytes of. */
export function rangeChecksums({ file, begin, end }: Fetch<StoredRun>, bytes: Buffer): RangeChecksum[] {
  const ranges: RangeChecksum[] = [];
  for (let at = begin; at < end; ) {
    const to = Math.min(end, borderAfter(at));
    ranges.push({ file, begin: at, end: to, crc32c: hexCrc(crc32c(bytes.subarray(at - begin, to - begin))) });
    at = to;
  }
  return ranges;
}

function chunkOf(byte: number): number {
  return Math.floor(byte / CHUNK_BYTES);
}

/** Returns the end of the chunk of a byte. */
function borderAfter(byte: number): number {
  return (chunkOf(byte) + 1) * CHUNK_BYTES;
}

function cutAtChunks<Run extends StoredRun>(read: Run, elementBytes: number): Run[] {
  const pieces: Run[] = [];
  for (let at = read.byte_begin; at < read.byte_end; ) {
    const elements = Math.ceil((borderAfter(at) - at) / elementBytes);
    const end = Math.min(read.byte_end, at + elements * elementBytes);
    const begin = read.begin + (at - read.byte_begin) / elementBytes;
    pieces.push({ ...read, byte_begin: at, byte_end: end, begin });
    at = end;
  }
  return pieces;
}
