import { isFinal, type JobState, type StreamEntry, ZerofleetError } from '../../contracts/index.js';
import type { JobStorePort, StreamKind } from '../../state/index.js';

/** Entries read from the store at once. */
const BATCH_SIZE = 500;

/**
 * What a follower is told: a batch of entries, that the entries that it has were lost and all that is known follows from its beginning,
 * that nothing happened for a while, or that the job has ended.
 */
export type Followed =
  | { kind: 'entries'; entries: StreamEntry[] }
  | { kind: 'reset' }
  | { kind: 'quiet' }
  | { kind: 'end'; state: JobState };

export interface FollowOptions {
  /** The `position` of the last entry that the follower has; null: it has none. */
  after: string | null;
  /** Kinds of entries that it wants; all when absent. */
  kinds?: readonly StreamKind[] | undefined;
  /** How long nothing may happen before the follower hears that nothing happened, in milliseconds. */
  quietMs: number;
  /** Ends the following without an `end`. */
  signal: AbortSignal;
}

/**
 * Everything that happens to a job after a place, in order, each entry once, until the job has ended.
 *
 * The job is read before its stream: a job seen in a final state appends nothing more, so what the following read finds is
 * all that there will be. The consumer sets the pace; nothing is read ahead of it.
 */
export async function* followJob(
  store: Pick<JobStorePort, 'getJob' | 'readStream' | 'waitStream'>,
  jobId: string,
  { after, kinds, quietMs, signal }: FollowOptions,
): AsyncGenerator<Followed> {
  let last = after;
  let told = performance.now();
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
      told = performance.now();
    }
    last = entries.at(-1)?.position ?? last;
    // One of the events may say that the job has ended since it was read; nothing comes after that one.
    if (entries.length === BATCH_SIZE || entries.some(({ kind }) => kind === 'event')) continue;
    // Deleted while it was followed.
    if (job === null) return;
    if (isFinal(job.state) && !signal.aborted) {
      yield { kind: 'end', state: job.state };
      return;
    }
    // What it does not want may happen all the time, and it has to hear that this end lives nevertheless.
    const timeoutMs = Math.max(0, told + quietMs - performance.now());
    const happened = await store.waitStream(jobId, last, { timeoutMs, signal });
    if (signal.aborted || (happened && performance.now() - told < quietMs)) continue;
    yield { kind: 'quiet' };
    told = performance.now();
  }
}

function nullWhenLost(error: unknown): null {
  if (error instanceof ZerofleetError && error.code === 'position_lost') return null;
  throw error;
}

function ofKinds(entries: StreamEntry[], kinds: readonly StreamKind[] | undefined): StreamEntry[] {
  return kinds ? entries.filter(({ kind }) => kinds.includes(kind)) : entries;
}
