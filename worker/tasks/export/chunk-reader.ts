import type { RetryPolicy } from '../../../contracts/rank-protocol.js';
import { type ChecksummedFile, VerifiedChunks } from '../../../formats/checkpoint/verified-chunks.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retryTransient } from '../../shared/errors.js';

/** Number of cached chunks: parameters are read in order, and the pieces of each file follow each other. */
const CACHED_CHUNKS = 8;

interface ChunkReaderOptions {
  objects: ObjectStore;
  /** Key of the directory of the files. */
  directory: string;
  files: readonly ChecksummedFile[];
  retry: RetryPolicy;
}

/** Reads verified files of one directory, with retries. */
export class ChunkReader extends VerifiedChunks {
  constructor({ objects, directory, files, retry }: ChunkReaderOptions) {
    super({
      files,
      cached: CACHED_CHUNKS,
      get: (file, range) => retryTransient(() => objects.get(`${directory}/${file}`, range), retry),
    });
  }
}
