/** The port of a job's stream. */
import type { StreamEntry } from '../../contracts/index.js';

export type StreamKind = StreamEntry['kind'];

/**
 * The job's stream: events, metrics and log lines in one sequence. A place in it is the `position` of an entry; null is the beginning. A
 * loss of Redis ends the stream and invalidates its positions: the restored job has another stream. A failover that loses the end of a
 * stream invalidates the positions in that end, also when the stream has grown beyond them since.
 */
export interface JobStreams {
  /**
   * Returns entries after a position in order, at most `limit`; only `kinds` when given. Empty for an unknown job.
   * @throws ZerofleetError `position_lost` when the job's stream has no such position
   */
  readStream(
    jobId: string,
    after: string | null,
    limit: number,
    kinds?: readonly StreamKind[],
  ): Promise<StreamEntry[]>;
  /**
   * Waits until the stream has an entry after a position, or no such position.
   * @returns false when `timeoutMs` passed or `signal` was aborted first
   */
  waitStream(jobId: string, after: string | null, options: WaitOptions): Promise<boolean>;
  /**
   * Waits until the job's `state_version` differs from `version`, which may have been lost in a failover. Any number of waiters share one
   * subscription.
   * @returns false when `timeoutMs` passed or `signal` was aborted first
   */
  waitVersion(jobId: string, version: number, options: WaitOptions): Promise<boolean>;
}

export interface WaitOptions {
  timeoutMs: number;
  signal?: AbortSignal;
}
