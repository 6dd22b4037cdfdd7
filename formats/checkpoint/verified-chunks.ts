import { crc32c } from '@node-rs/crc32';
import { ZerofleetError } from '../../contracts/index.js';
import type { ByteRange } from '../../platform/object-store/common/port.js';
import { CHUNK_BYTES, crcOfChunk, hexCrc, type ManifestShard } from './manifest.js';

/** A file with a CRC32C of each chunk. */
export type ChecksummedFile = Pick<ManifestShard, 'file' | 'bytes' | 'crc32c'>;

interface VerifiedChunksOptions {
  files: readonly ChecksummedFile[];
  /** Reads bytes of a file. */
  get(file: string, range: ByteRange): Promise<Buffer>;
  /** Number of cached chunks. */
  cached: number;
}

/** Reads files in pieces, verified chunk by chunk, with constant memory. */
export class VerifiedChunks {
  private readonly chunks = new Map<string, Promise<Buffer>>();
  private readonly files: Map<string, ChecksummedFile>;

  constructor(private readonly options: VerifiedChunksOptions) {
    this.files = new Map(options.files.map((file) => [file.file, file]));
  }

  /**
   * Reads bytes `[begin, end)` of a file in order, one chunk ahead.
   * @throws ZerofleetError `shard_corrupt`; errors of `get`
   */
  async *read(file: string, begin: number, end: number): AsyncGenerator<Uint8Array> {
    for (let at = begin; at < end; ) {
      const index = Math.floor(at / CHUNK_BYTES);
      const to = Math.min(end, (index + 1) * CHUNK_BYTES);
      const chunk = await this.chunk(file, index);
      // Its error is thrown when its turn comes.
      if (to < end) this.chunk(file, index + 1).catch(() => undefined);
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
    if (this.chunks.size > this.options.cached) this.chunks.delete(this.chunks.keys().next().value ?? '');
    return read;
  }

  private async readChunk(file: string, index: number): Promise<Buffer> {
    const known = this.files.get(file);
    if (!known) throw new Error(`no file ${file}`);
    const begin = index * CHUNK_BYTES;
    const end = Math.min(known.bytes, begin + CHUNK_BYTES);
    const bytes = await this.options.get(file, { begin, end });
    if (hexCrc(crc32c(bytes)) !== crcOfChunk(known.crc32c, index)) {
      throw new ZerofleetError(
        'shard_corrupt',
        `${file}: the bytes of chunk ${index} differ from the saved ones`,
      );
    }
    return bytes;
  }
}
