import type { Job, JobMetric } from '../../contracts/index.js';

/** Reads the items of a file, again from the first one with each call. */
export type ReadMetrics = () => AsyncIterable<JobMetric>;

export type MeasuredJob = Pick<Job, 'id' | 'created_at'>;

/** A form of metrics as a file. */
export interface MetricFormat {
  contentType: string;
  nameOf(job: MeasuredJob): string;
  /** Yields the file in pieces of about one item each. */
  encode(read: ReadMetrics, job: MeasuredJob): AsyncIterable<string | Uint8Array>;
}
