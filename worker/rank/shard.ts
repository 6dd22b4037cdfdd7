import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { ShardRecord } from '../../contracts/rank-protocol.js';
import { STATE_NAMES } from '../../contracts/state-records.js';
import { BYTES_PER_ELEMENT, type ShardContents } from '../../formats/checkpoint/shard-contents.js';
import { ChunkChecksums } from '../../formats/checkpoint/verify.js';
import { safetensorsHeader } from '../../formats/safetensors/header.js';
import { DIRECT_WRITE_BYTES, type ObjectStore } from '../../platform/object-store/index.js';
import type { SnapshotSlice } from '../shared/native/adapter.js';

/** Bytes hashed at a time; the event loop runs in between. */
const HASH_BYTES = 1024 * 1024;

/** Shard of one rank: a safetensors file of 1-D tensors, laid out by formats/checkpoint/shard-contents.ts. */
export class Shard {
  private readonly header: Buffer;
  private readonly slices: SnapshotSlice[];
  /** Computed once and kept for retries. */
  private sums: Promise<Pick<ShardRecord, 'sha256' | 'crc32c'>> | null = null;

  /** Lays out the shard. @param slices all slices that the core owns on this rank */
  constructor(
    private readonly file: string,
    contents: ShardContents,
    rank: number,
    slices: readonly SnapshotSlice[],
  ) {
    this.slices = inFileOrder(slices);
    checkOwned(contents, rank, this.slices);
    const tensors = Array.from(contents.tensors(rank), ({ state, param, begin, end }) => ({
      name: `${state}/${param}`,
      dtype: 'F32' as const,
      shape: [(end - begin) / BYTES_PER_ELEMENT],
      begin,
      end,
    }));
    this.header = safetensorsHeader(tensors, {}, DIRECT_WRITE_BYTES);
  }

  /**
   * Puts the shard into the object store while its checksums are computed. May be called again after an error. When it
   * settles, no reader uses the bytes any more.
   */
  async putTo(objects: ObjectStore, directory: string): Promise<ShardRecord> {
    this.sums ??= this.checksums();
    const put = objects.put(`${directory}/${this.file}`, this.parts);
    const [stored, summed] = await Promise.allSettled([put, this.sums]);
    if (stored.status === 'rejected') throw stored.reason;
    if (summed.status === 'rejected') throw summed.reason;
    const { file, header } = this;
    return { file, bytes: stored.value.bytes, data_begin: header.length, ...summed.value };
  }

  private async checksums(): Promise<Pick<ShardRecord, 'sha256' | 'crc32c'>> {
    const sha256 = createHash('sha256');
    const chunks = new ChunkChecksums();
    for (const part of this.parts) {
      for (let at = 0; at < part.length; at += HASH_BYTES) {
        const piece = part.subarray(at, at + HASH_BYTES);
        sha256.update(piece);
        chunks.add(piece);
        await setImmediate();
      }
    }
    return { sha256: sha256.digest('hex'), crc32c: chunks.finish() };
  }

  /** Bytes of the file. */
  private get parts(): Uint8Array[] {
    return [this.header, ...this.slices.map(({ data }) => data)];
  }
}

function inFileOrder(slices: readonly SnapshotSlice[]): SnapshotSlice[] {
  const order = (slice: SnapshotSlice) => STATE_NAMES.indexOf(slice.state);
  return [...slices].sort((a, b) => order(a) - order(b) || a.param - b.param || a.begin - b.begin);
}

/**
 * Checks that the core owns the elements of the layout. Readers of the shard rely on it, and no other check covers it.
 */
function checkOwned(contents: ShardContents, rank: number, slices: readonly SnapshotSlice[]): void {
  const owned = slices.values();
  for (const { state, param, begin, end } of contents.stretches(rank)) {
    const slice = owned.next().value;
    if (slice?.state !== state || slice.param !== param || slice.begin !== begin || slice.end !== end)
      throw new Error(
        `rank ${rank} owns elements [${slice?.begin}, ${slice?.end}) of ${slice?.state} of parameter ${slice?.param}, ` +
          `expected [${begin}, ${end}) of ${state} of ${param}`,
      );
  }
  if (!owned.next().done) throw new Error(`rank ${rank} owns more elements than the layout gives it`);
}
