import type { JobMetric } from '../../contracts/index.js';
import type { StepRange } from './metric-blocks.js';
import type { JobStreams } from './streams.js';

/** Entries per read of the store. */
const BATCH_SIZE = 1000;

/** Metrics of a range of steps, in stream order. */
export async function* metricsBetween(
  store: Pick<JobStreams, 'readSteps'>,
  jobId: string,
  steps: StepRange,
  { after: first = null, batch = BATCH_SIZE }: { after?: string | null; batch?: number } = {},
): AsyncGenerator<JobMetric> {
  for (let after = first; ; ) {
    const metrics = await store.readSteps(jobId, after, batch, steps);
    for (const metric of metrics) if (metric.step >= steps.from && metric.step <= steps.to) yield metric;
    const last = metrics.at(-1);
    if (last === undefined) return;
    after = last.position;
  }
}
