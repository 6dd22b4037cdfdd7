/** The port of a job's stream. */
import type { StreamEntry } from '../../contracts/index.js';

export type StreamKind = StreamEntry['kind'];

/** The job's stream: events, metrics and log lines in one sequence. */
export interface JobStreams {
  /**
   * Entries after `afterSeq` in order, at most `limit`; of `kinds` only when given. Empty for an unknown job.
   */
  readStream(
    jobId: string,
    afterSeq: number,
    limit: number,
    kinds?: readonly StreamKind[],
  ): Promise<StreamEntry[]>;
  /** Which stream the job has: it is another one, from its first entry on, once it was lost with Redis. Null for an unknown job. */
  streamOf(jobId: string): Promise<string | null>;
  /**
   * Waits until the stream has an entry after `afterSeq`.
   * @returns false when `timeoutMs` passed or `signal` was aborted first
   */
  waitStream(jobId: string, afterSeq: number, options: WaitOptions): Promise<boolean>;
  /**
   * Waits until the job's `state_version` is greater than `version`. Any number of waiters share one subscription.
   * @returns false when `timeoutMs` passed or `signal` was aborted first
   */
  waitVersion(jobId: string, version: number, options: WaitOptions): Promise<boolean>;
}

export interface WaitOptions {
  timeoutMs: number;
  signal?: AbortSignal;
}
