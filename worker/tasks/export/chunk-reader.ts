import { crc32c } from '@node-rs/crc32';
import { ZerofleetError } from '../../../contracts/index.js';
import type { RetryPolicy } from '../../../contracts/rank-protocol.js';
import { CHUNK_BYTES, crcOfChunk, hexCrc } from '../../../formats/checkpoint/manifest.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retryTransient } from '../../shared/errors.js';
import type { ChecksummedFile } from '../../shared/verify-load.js';

/** Number of cached chunks: parameters are read in order, and the pieces of each file follow each other. */
const CACHED_CHUNKS = 8;

interface ChunkReaderOptions {
  objects: ObjectStore;
  /** Key of the directory of the files. */
  directory: string;
  files: readonly ChecksummedFile[];
  retry: RetryPolicy;
}

/** Reads files in pieces, verified chunk by chunk, with constant memory. */
export class ChunkReader {
  private readonly chunks = new Map<string, Promise<Buffer>>();
  private readonly files: Map<string, ChecksummedFile>;

  constructor(private readonly options: ChunkReaderOptions) {
    this.files = new Map(options.files.map((file) => [file.file, file]));
  }

  /**
   * Reads bytes `[begin, end)` of a file in order.
   * @throws ZerofleetError `shard_corrupt`; errors of the object store
   */
  async *read(file: string, begin: number, end: number): AsyncGenerator<Uint8Array> {
    for (let at = begin; at < end; ) {
      const index = Math.floor(at / CHUNK_BYTES);
      const to = Math.min(end, (index + 1) * CHUNK_BYTES);
      const chunk = await this.chunk(file, index);
      yield chunk.subarray(at - index * CHUNK_BYTES, to - index * CHUNK_BYTES);
      at = to;
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
    const known = this.files.get(file);
    if (!known) throw new Error(`no file ${file}`);
    const begin = index * CHUNK_BYTES;
    const end = Math.min(known.bytes, begin + CHUNK_BYTES);
    const bytes = await retryTransient(() => objects.get(`${directory}/${file}`, { begin, end }), policy);
    if (hexCrc(crc32c(bytes)) !== crcOfChunk(known.crc32c, index)) {
      throw new ZerofleetError(
        'shard_corrupt',
        `${file}: the bytes of chunk ${index} differ from the saved ones`,
      );
    }
    return bytes;
  }
}
