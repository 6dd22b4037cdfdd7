import { crc32c } from '@node-rs/crc32';
import { ZerofleetError } from '../../contracts/index.js';
import type { RetryPolicy, StateName } from '../../contracts/rank-protocol.js';
import {
  CHUNK_BYTES,
  crcOfChunk,
  hexCrc,
  type Manifest,
  type ManifestShard,
} from '../../platform/checkpoint/manifest.js';
import { planReads } from '../../platform/checkpoint/read-plan.js';
import { ShardContents } from '../../platform/checkpoint/shard-contents.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { retryTransient } from '../common/errors.js';

/** Number of cached chunks: parameters are read in order, and the pieces of each shard follow each other. */
const CACHED_CHUNKS = 8;

export interface TensorReaderOptions {
  objects: ObjectStore;
  /** Key of the checkpoint's directory. */
  directory: string;
  manifest: Manifest;
  retry: RetryPolicy;
}

/** Reads whole parameters of a checkpoint in pieces, verified chunk by chunk, with constant memory. */
export class TensorReader {
  private readonly chunks = new Map<string, Promise<Buffer>>();
  private readonly shards: Map<string, ManifestShard>;
  private readonly contents: ShardContents;

  constructor(private readonly options: TensorReaderOptions) {
    this.contents = new ShardContents(options.manifest);
    this.shards = new Map(options.manifest.shards.map((shard) => [shard.file, shard]));
  }

  /**
   * Reads one state of one parameter, in the order of its elements: fp32, little-endian.
   * @throws ZerofleetError `shard_corrupt`; errors of the object store
   */
  async *read(state: StateName, param: string, numel: number): AsyncGenerator<Uint8Array> {
    const wanted = { states: [state], slices: [{ param, begin: 0, end: numel }] };
    // The plan is in the order of the files, but elements are returned in order.
    const plan = await planReads(this.options.manifest, wanted, this.contents);
    const reads = [...plan].sort((a, b) => a.begin - b.begin);
    for (const { file, byte_begin, byte_end } of reads) {
      for (let at = byte_begin; at < byte_end; ) {
        const index = Math.floor(at / CHUNK_BYTES);
        const end = Math.min(byte_end, (index + 1) * CHUNK_BYTES);
        const chunk = await this.chunk(file, index);
        yield chunk.subarray(at - index * CHUNK_BYTES, end - index * CHUNK_BYTES);
        at = end;
      }
    }
  }

  private chunk(file: string, index: number): Promise<Buffer> {
    const key = `${file}/${index}`;
    const cached = this.chunks.get(key);
    if (cached) {
      // Moves the entry to the end: the first one is always the least recently used.
      this.chunks.delete(key);
      this.chunks.set(key, cached);
      return cached;
    }
    const read = this.readChunk(file, index);
    this.chunks.set(key, read);
    if (this.chunks.size > CACHED_CHUNKS) this.chunks.delete(this.chunks.keys().next().value ?? '');
    return read;
  }

  private async readChunk(file: string, index: number): Promise<Buffer> {
    const { objects, directory, retry: policy } = this.options;
    const shard = this.shards.get(file);
    if (!shard) throw new Error(`no shard ${file}`);
    const begin = index * CHUNK_BYTES;
    const end = Math.min(shard.bytes, begin + CHUNK_BYTES);
    const bytes = await retryTransient(() => objects.get(`${directory}/${file}`, { begin, end }), policy);
    if (hexCrc(crc32c(bytes)) !== crcOfChunk(shard.crc32c, index)) {
      throw new ZerofleetError(
        'shard_corrupt',
        `${file}: the bytes of chunk ${index} differ from the saved ones`,
      );
    }
    return bytes;
  }
}
