import { eventFileName, eventRecords, type ReadMetrics } from '../../formats/metric-files/tensorboard.js';
import { csvLines } from './csv.js';
import type { MetricFormat } from './format.js';

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
    nameOf: eventFileName,
    encode: eventRecords,
  },
} satisfies Record<string, MetricFormat>;

async function* jsonLines(read: ReadMetrics): AsyncGenerator<string> {
  for await (const metric of read()) yield `${JSON.stringify(metric)}\n`;
}
