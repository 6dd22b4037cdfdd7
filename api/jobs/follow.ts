import { isFinal, type JobState, type StreamEntry } from '../../contracts/index.js';
import type { JobStorePort, StreamKind } from '../../platform/job-store/port.js';

/** Entries read from the store at once. */
const BATCH_SIZE = 500;

/** A place in a stream. */
export interface StreamPlace {
  /** Which stream; null: the one that there is. */
  stream: string | null;
  seq: number;
}

/**
 * What a follower is told: a batch of entries, that the stream that it has entries of was lost and another one follows from its beginning,
 * that nothing happened for a while, or that the job has ended.
 */
export type Followed =
  | { kind: 'entries'; stream: string; entries: StreamEntry[] }
  | { kind: 'reset'; stream: string }
  | { kind: 'quiet' }
  | { kind: 'end'; state: JobState };

export interface FollowOptions {
  /** The last entry that the follower has. */
  after: StreamPlace;
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
  store: Pick<JobStorePort, 'getJob' | 'readStream' | 'streamOf' | 'waitStream'>,
  jobId: string,
  { after, kinds, quietMs, signal }: FollowOptions,
): AsyncGenerator<Followed> {
  let { stream, seq: lastSeq } = after;
  let told = performance.now();
  while (!signal.aborted) {
    const job = await store.getJob(jobId);
    const current = await store.streamOf(jobId);
    if (isAnother(current, stream)) {
      lastSeq = 0;
      yield { kind: 'reset', stream: current };
    }
    stream = current ?? stream;
    const entries = await store.readStream(jobId, lastSeq, BATCH_SIZE);
    // These may be of another stream, which began since.
    if ((await store.streamOf(jobId)) !== current) continue;
    const wanted = ofKinds(entries, kinds);
    if (wanted.length > 0) {
      yield { kind: 'entries', stream: stream ?? '', entries: wanted };
      told = performance.now();
    }
    lastSeq = lastOf(entries, lastSeq);
    if (entries.length === BATCH_SIZE) continue;
    // Deleted while it was followed.
    if (job === null) return;
    if (isFinal(job.state) && !signal.aborted) {
      yield { kind: 'end', state: job.state };
      return;
    }
    // What it does not want may happen all the time, and it has to hear that this end lives nevertheless.
    const timeoutMs = Math.max(0, told + quietMs - performance.now());
    const happened = await store.waitStream(jobId, lastSeq, { timeoutMs, signal });
    if (signal.aborted || (happened && performance.now() - told < quietMs)) continue;
    yield { kind: 'quiet' };
    told = performance.now();
  }
}

/** Null is that of an unknown job, or one that the follower doesn't know yet. */
function isAnother(current: string | null, stream: string | null): current is string {
  return current !== null && stream !== null && current !== stream;
}

function lastOf(entries: readonly StreamEntry[], before: number): number {
  return entries.at(-1)?.seq ?? before;
}

function ofKinds(entries: StreamEntry[], kinds: readonly StreamKind[] | undefined): StreamEntry[] {
  return kinds ? entries.filter(({ kind }) => kinds.includes(kind)) : entries;
}
