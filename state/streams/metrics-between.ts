import type { JobMetric, StreamEntry } from '../../contracts/index.js';
import type { JobStreams } from './streams-port.js';

/** Entries per read of the store. */
const BATCH_SIZE = 1000;

export interface StepRange {
  from: number;
  to: number;
}

/** Metrics of a range of steps, in stream order. */
export async function* metricsBetween(
  store: Pick<JobStreams, 'readStream'>,
  jobId: string,
  { from, to }: StepRange,
  { after: first = null, batch = BATCH_SIZE }: { after?: string | null; batch?: number } = {},
): AsyncGenerator<JobMetric> {
  for (let after = first; ; ) {
    const entries = await store.readStream(jobId, after, batch, ['metric']);
    for (const entry of entries) if (isMetric(entry) && entry.step >= from && entry.step <= to) yield entry;
    const last = entries.at(-1);
    if (last === undefined || entries.length < batch) return;
    after = last.position;
  }
}

function isMetric(entry: StreamEntry): entry is JobMetric {
  return entry.kind === 'metric';
}
