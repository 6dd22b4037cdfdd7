import { csvLines } from './csv.js';
import type { MeasuredJob, MetricFormat, ReadMetrics } from './format.js';
import { createdSeconds, eventRecords } from './tensorboard.js';

/** The values of the query parameter `format` that are answered with a file. */
export const METRIC_FORMATS = {
  jsonl: {
    contentType: 'application/x-ndjson',
    nameOf: ({ id }) => `${id}.jsonl`,
    encode: jsonLines,
  },
  csv: {
    contentType: 'text/csv; charset=utf-8; header=present',
    nameOf: ({ id }) => `${id}.csv`,
    encode: csvLines,
  },
  tensorboard: {
    contentType: 'application/octet-stream',
    // TensorBoard reads only files with `tfevents` in their names.
    nameOf: (job: MeasuredJob) => `events.out.tfevents.${Math.floor(createdSeconds(job))}.${job.id}`,
    encode: eventRecords,
  },
} satisfies Record<string, MetricFormat>;

async function* jsonLines(read: ReadMetrics): AsyncGenerator<string> {
  for await (const metric of read()) yield `${JSON.stringify(metric)}\n`;
}
