import { isFinal, type JobState, type StreamEntry } from '../../contracts/index.js';
import type { JobStorePort } from '../../platform/job-store/port.js';

/** Entries read from the store at once. */
const BATCH_SIZE = 500;

/** What a follower is told: a batch of entries, that nothing happened for a while, or that the job has ended. */
export type Followed =
  | { kind: 'entries'; entries: StreamEntry[] }
  | { kind: 'quiet' }
  | { kind: 'end'; state: JobState };

export interface FollowOptions {
  /** Last sequence number that the follower has. */
  afterSeq: number;
  /** How long nothing may happen before the follower hears that nothing happened, in milliseconds. */
  quietMs: number;
  /** Ends the following without an `end`. */
  signal: AbortSignal;
}

/**
 * Everything that happens to a job after `afterSeq`, in order, each entry once, until the job has ended.
 *
 * The job is read before its stream: a job seen in a final state appends nothing more, so what the following read finds is
 * all that there will be. The consumer sets the pace; nothing is read ahead of it.
 */
export async function* followJob(
  store: Pick<JobStorePort, 'getJob' | 'readStream' | 'waitStream'>,
  jobId: string,
  { afterSeq, quietMs, signal }: FollowOptions,
): AsyncGenerator<Followed> {
  let lastSeq = afterSeq;
  while (!signal.aborted) {
    const job = await store.getJob(jobId);
    for (;;) {
      const entries = await store.readStream(jobId, lastSeq, BATCH_SIZE);
      if (entries.length > 0) yield { kind: 'entries', entries };
      lastSeq = entries.at(-1)?.seq ?? lastSeq;
      if (entries.length < BATCH_SIZE || signal.aborted) break;
    }
    // Deleted while it was followed.
    if (job === null) return;
    if (isFinal(job.state) && !signal.aborted) {
      yield { kind: 'end', state: job.state };
      return;
    }
    const happened = await store.waitStream(jobId, lastSeq, { timeoutMs: quietMs, signal });
    if (!happened && !signal.aborted) yield { kind: 'quiet' };
  }
}
