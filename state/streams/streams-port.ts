/** The port of a job's stream. */
import type { JobMetric, StreamEntry } from '../../contracts/index.js';

export type StreamKind = StreamEntry['kind'];

/** Steps from `from` to `to`, both included. */
export interface StepRange {
  from: number;
  to: number;
}

/** Numbers `seq` of metrics from `first` to `last`, both included. */
export interface SeqRange {
  first: number;
  last: number;
}

/** A value and the metric that has it. */
export interface Extreme {
  value: number;
  seq: number;
}

/** A few metrics of successive steps, oldest first: one for each step of `steps`. A step back begins a block. */
export interface MetricBlock extends SeqRange {
  steps: StepRange;
  /** Bytes of the lines of its steps (formats/metric-files/step-lines.ts). */
  line_bytes: number;
  /** The least and the greatest value of each name, except `seconds/…` and `trust_ratios/…`; of equal ones the newest. */
  extremes: ReadonlyMap<string, readonly [least: Extreme, greatest: Extreme]>;
  /** False for the oldest block when some of its metrics were dropped. */
  is_whole: boolean;
}

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
   * Returns the newest entries before a position, newest first; null is the end of the stream.
   * @throws ZerofleetError as `readStream`
   */
  readNewest(
    jobId: string,
    before: string | null,
    limit: number,
    kinds: readonly StreamKind[],
  ): Promise<StreamEntry[]>;
  /**
   * Returns metrics after a position in order, at most `limit`. Skips most of those outside of a range of steps, at the cost of those inside
   * of it. Empty when no metric of the range follows.
   * @throws ZerofleetError as `readStream`
   */
  readSteps(jobId: string, after: string | null, limit: number, steps: StepRange): Promise<JobMetric[]>;
  /** Returns all blocks of the job's metrics, oldest first, with the extremes of some names. Metrics may follow the last block meanwhile. */
  readBlocks(jobId: string, names: readonly string[]): Promise<{ stream: string; blocks: MetricBlock[] }>;
  /**
   * Returns metrics by their numbers, in the order of the ranges. Dropped metrics are left out.
   * @param stream of `readBlocks`
   * @throws ZerofleetError `position_lost` when the job has another stream
   */
  readMetrics(jobId: string, stream: string, ranges: readonly SeqRange[]): Promise<JobMetric[]>;
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
