import { crc32c } from '@node-rs/crc32';
import { ZerofleetError } from '../../contracts/index.js';
import type { RangeChecksum } from '../../contracts/rank-protocol.js';
import { CHUNK_BYTES, crcOfChunk, hexCrc } from '../../formats/checkpoint/manifest.js';
import type { ChecksummedFile } from '../../formats/checkpoint/verified-chunks.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { combineCrc32c } from './crc-combine.js';

/**
 * Checks the ranges that the ranks read: their checksums, combined in order, must equal those of the complete chunks.
 * Bytes of these chunks that no rank needs (headers, states that are not restored) are read here. Chunks without a read
 * range are skipped.
 * @param directory key of the files' directory
 * @throws ZerofleetError `shard_corrupt` naming the first damaged chunk
 */
export async function verifyLoadedRanges(
  objects: ObjectStore,
  directory: string,
  files: readonly ChecksummedFile[],
  ranges: readonly RangeChecksum[],
): Promise<void> {
  const byFile = new Map<string, RangeChecksum[]>();
  for (const range of ranges) {
    const list = byFile.get(range.file);
    if (list) list.push(range);
    else byFile.set(range.file, [range]);
  }
  for (const shard of files) {
    const read = (range: { begin: number; end: number }) => objects.get(`${directory}/${shard.file}`, range);
    await verifyShard(shard, byFile.get(shard.file) ?? [], read);
  }
}

async function verifyShard(
  shard: ChecksummedFile,
  ranges: RangeChecksum[],
  read: (range: { begin: number; end: number }) => Promise<Buffer>,
): Promise<void> {
  const parts = new ChunkFolder(shard);
  for (const range of ranges.sort((a, b) => a.begin - b.begin)) {
    await fillGap(parts, range.begin, read);
    parts.add(range.begin, range.end, Number.parseInt(range.crc32c, 16));
  }
  await fillGap(parts, shard.bytes, read);
}

async function fillGap(
  parts: ChunkFolder,
  until: number,
  read: (range: { begin: number; end: number }) => Promise<Buffer>,
): Promise<void> {
  while (parts.position < until) {
    const begin = parts.position;
    const end = Math.min(until, parts.chunkEnd);
    if (parts.atChunkBegin && end === parts.chunkEnd) {
      parts.skipChunk();
      continue;
    }
    parts.add(begin, end, crc32c(await read({ begin, end })));
  }
}

/** Combines the parts of a shard, which come in order and without gaps, chunk by chunk. */
class ChunkFolder {
  position = 0;
  private crc = 0;

  constructor(private readonly shard: ChecksummedFile) {}

  get chunkEnd(): number {
    return Math.min(this.shard.bytes, (Math.floor(this.position / CHUNK_BYTES) + 1) * CHUNK_BYTES);
  }

  get atChunkBegin(): boolean {
    return this.position % CHUNK_BYTES === 0;
  }

  /** Skips a complete chunk. */
  skipChunk(): void {
    this.position = this.chunkEnd;
  }

  add(begin: number, end: number, crc: number): void {
    const { shard, chunkEnd } = this;
    if (begin !== this.position || end > chunkEnd) {
      throw new Error(`${shard.file}: bytes [${begin}, ${end}) do not continue at ${this.position}`);
    }
    this.crc = combineCrc32c(this.crc, crc, end - begin);
    this.position = end;
    if (end < chunkEnd) return;
    const chunk = Math.floor(begin / CHUNK_BYTES);
    if (hexCrc(this.crc) !== crcOfChunk(shard.crc32c, chunk)) {
      throw new ZerofleetError(
        'shard_corrupt',
        `${shard.file}: the bytes of chunk ${chunk} differ from the saved ones`,
      );
    }
    this.crc = 0;
  }
}
