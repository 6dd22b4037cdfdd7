import type { RangeChecksum, RetryPolicy } from '../../../contracts/rank-protocol.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retryTransient } from '../../shared/errors.js';
import { type Fetch, rangeChecksums, type StoredRun } from './chunks.js';

/** Concurrent requests of one rank to the object store. */
const PARALLEL_FETCHES = 4;

interface FetchSource {
  objects: ObjectStore;
  /** Key of the directory of the files. */
  directory: string;
  retry: RetryPolicy;
}

/**
 * Reads every fetch once, several at a time in no particular order, and passes on its pieces.
 * @param use receives a piece and its bytes, which are valid only until it returns: the next fetch reuses their memory
 * @returns checksums of all bytes read; they are not verified here
 * @throws errors of the object store; errors of `use`
 */
export async function readFetches<Run extends StoredRun>(
  fetches: Iterable<Fetch<Run>>,
  source: FetchSource,
  use: (piece: Run, bytes: Buffer) => void,
): Promise<RangeChecksum[]> {
  const ranges: RangeChecksum[] = [];
  const queue = fetches[Symbol.iterator]();
  const lane = async () => {
    const memory = new LaneMemory();
    for (let next = queue.next(); !next.done; next = queue.next()) {
      const fetch = next.value;
      const bytes = await read(fetch, source, memory);
      ranges.push(...rangeChecksums(fetch, bytes));
      for (const piece of fetch.pieces) {
        use(piece, bytes.subarray(piece.byte_begin - fetch.begin, piece.byte_end - fetch.begin));
      }
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_FETCHES }, lane));
  return ranges;
}

function read(
  { file, begin, end }: Fetch<StoredRun>,
  { objects, directory, retry: policy }: FetchSource,
  memory: LaneMemory,
): Promise<Buffer> {
  const into = memory.take(end - begin);
  return retryTransient(() => objects.get(`${directory}/${file}`, { begin, end }, into), policy);
}

/**
 * Reused memory of one lane. V8 counts external memory. New memory of a few MiB for each fetch would make it collect
 * garbage every few fetches, half of a load's time with a large state.
 */
class LaneMemory {
  private held = Buffer.alloc(0);

  take(bytes: number): Buffer {
    if (this.held.length < bytes) this.held = Buffer.allocUnsafeSlow(bytes);
    return this.held;
  }
}
