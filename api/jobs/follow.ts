import { isFinal, type JobState, type StreamEntry, ZerofleetError } from '../../contracts/index.js';
import type { JobStore, StreamKind } from '../../state/index.js';

/** Entries per read of the store. */
const BATCH_SIZE = 500;

/**
 * Message to a follower: a batch of entries, a reset, quiet (no entries for a while), or the end of the job. A reset
 * means that the follower's entries were lost and the stream restarts from the beginning.
 */
export type Followed =
  | { kind: 'entries'; entries: StreamEntry[] }
  | { kind: 'reset' }
  | { kind: 'quiet' }
  | { kind: 'end'; state: JobState };

interface FollowOptions {
  /** The `position` of the follower's last entry; null for none. */
  after: string | null;
  /** Kinds of entries to deliver; all when absent. */
  kinds?: readonly StreamKind[] | undefined;
  /** Interval without entries after which the follower gets `quiet`, in milliseconds. */
  quietMs: number;
  /** Stops following without an `end`. */
  signal: AbortSignal;
}

/**
 * Yields all entries of a job after a position, in order, each once, until the job has ended.
 *
 * The job is read before its stream: a job seen in a final state appends nothing more, so the following read is
 * complete. The consumer sets the pace; nothing is read ahead.
 */
export async function* followJob(
  store: Pick<JobStore, 'getJob' | 'readStream' | 'waitStream'>,
  jobId: string,
  { after, kinds, quietMs, signal }: FollowOptions,
): AsyncGenerator<Followed> {
  let last = after;
  let yieldedAt = performance.now();
  while (!signal.aborted) {
    const job = await store.getJob(jobId);
    const entries = await store.readStream(jobId, last, BATCH_SIZE).catch(nullWhenLost);
    if (entries === null) {
      last = null;
      yield { kind: 'reset' };
      continue;
    }
    const wanted = ofKinds(entries, kinds);
    if (wanted.length > 0) {
      yield { kind: 'entries', entries: wanted };
      yieldedAt = performance.now();
    }
    last = entries.at(-1)?.position ?? last;
    // An event may report that the job has ended since it was read; it is the last one.
    if (entries.length === BATCH_SIZE || entries.some(({ kind }) => kind === 'event')) continue;
    // Deleted while it was followed.
    if (job === null) return;
    if (isFinal(job.state) && !signal.aborted) {
      yield { kind: 'end', state: job.state };
      return;
    }
    // Filtered entries may arrive constantly; the follower still needs a sign of life.
    const timeoutMs = Math.max(0, yieldedAt + quietMs - performance.now());
    const happened = await store.waitStream(jobId, last, { timeoutMs, signal });
    if (signal.aborted || (happened && performance.now() - yieldedAt < quietMs)) continue;
    yield { kind: 'quiet' };
    yieldedAt = performance.now();
  }
}

function nullWhenLost(error: unknown): null {
  if (error instanceof ZerofleetError && error.code === 'position_lost') return null;
  throw error;
}

function ofKinds(entries: StreamEntry[], kinds: readonly StreamKind[] | undefined): StreamEntry[] {
  return kinds ? entries.filter(({ kind }) => kinds.includes(kind)) : entries;
}
