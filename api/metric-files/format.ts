import type { MeasuredJob, ReadMetrics } from '../../formats/metric-files/tensorboard.js';

/** A form of metrics as a file. */
export interface MetricFormat {
  contentType: string;
  nameOf(job: MeasuredJob): string;
  /** Yields the file in pieces of about one item each. */
  encode(read: ReadMetrics, job: MeasuredJob): AsyncIterable<string | Uint8Array>;
}
