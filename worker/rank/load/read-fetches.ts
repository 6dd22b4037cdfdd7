import type { RangeChecksum, RetryPolicy } from '../../../contracts/rank-protocol.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retry } from '../../../platform/process/retry.js';
import { type Fetch, rangeChecksums, type StoredRun } from '../../checkpoint/chunks.js';
import { isRetryable } from '../../common/errors.js';

/** Requests to the object store that one rank has under way at once. */
const PARALLEL_FETCHES = 4;

export interface FetchSource {
  objects: ObjectStore;
  /** Key of the directory of the files. */
  directory: string;
  retry: RetryPolicy;
}

/**
 * Reads every fetch once, several at a time in no particular order, and hands its pieces on.
 * @param use gets a piece and its bytes, which are good only until it returns: the next fetch has their memory
 * @returns checksums of everything that was read; nothing of it is verified yet
 * @throws errors of the object store; what `use` throws
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
  return retry(() => objects.get(`${directory}/${file}`, { begin, end }, into), policy, {
    retryable: isRetryable,
  });
}

/**
 * Memory of one lane, used again and again. Fresh memory of a few MiB for each fetch would make V8, which counts what lies outside of
 * its heap, look for garbage every few fetches: with a large state in memory half of a load's time.
 */
class LaneMemory {
  private held = Buffer.alloc(0);

  take(bytes: number): Buffer {
    if (this.held.length < bytes) this.held = Buffer.allocUnsafeSlow(bytes);
    return this.held;
  }
}
