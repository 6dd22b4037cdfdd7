/** Metrics of a job's steps as a result file. */
import type { FileObject } from 'openai/resources/files';
import type { Job } from '../../../contracts/index.js';
import { STEP_LINES_HEAD, stepLine } from '../../../formats/metric-files/step-lines.js';
import type { JobStreams } from '../../../state/index.js';
import { isWhole, metricsOfParts, newestParts } from '../../jobs/newest-metrics.js';
import type { MetricFormat } from '../../metric-files/format.js';
import { secondsOf } from '../pages.js';

const PREFIX = 'file-results-';
const FILENAME = 'step_metrics.csv';

type Store = Pick<JobStreams, 'readBlocks' | 'readMetrics'>;

/** A line for each step, in their order. */
export const RESULTS_FORMAT: MetricFormat = {
  contentType: 'text/csv; charset=utf-8',
  nameOf: () => FILENAME,
  async *encode(read) {
    yield STEP_LINES_HEAD;
    for await (const metric of read()) yield stepLine(metric);
  },
};

/** Returns the id of the file with a job's metrics. */
export function resultsId(jobId: string): string {
  return PREFIX + jobId;
}

/** Returns the job of a result file; null for another file. */
export function jobOfResults(fileId: string): string | null {
  return fileId.startsWith(PREFIX) ? fileId.slice(PREFIX.length) : null;
}

/**
 * Describes the file. Its size is a sum over blocks of metrics; only metrics of blocks that recoveries repeated are
 * read.
 */
export async function resultsFile(
  store: Store,
  { id: jobId, updated_at }: Pick<Job, 'id' | 'updated_at'>,
): Promise<FileObject> {
  const { read, parts } = await partsOf(store, jobId);
  let bytes = STEP_LINES_HEAD.length;
  for (const part of parts) if (isWhole(part)) bytes += part.block.line_bytes;
  const others = parts.filter((part) => !isWhole(part));
  for await (const metric of metricsOfParts(read, others)) bytes += stepLine(metric).length;
  return {
    id: resultsId(jobId),
    object: 'file',
    bytes,
    created_at: secondsOf(updated_at),
    filename: FILENAME,
    purpose: 'fine-tune-results',
    status: 'processed',
  };
}

/** Yields the newest metric of each step, in the order of the steps. */
export async function* resultsOf(store: Store, jobId: string) {
  const { read, parts } = await partsOf(store, jobId);
  yield* metricsOfParts(read, parts);
}

async function partsOf(store: Store, jobId: string) {
  const { stream, blocks } = await store.readBlocks(jobId, []);
  const read = (ranges: Parameters<Store['readMetrics']>[2]) => store.readMetrics(jobId, stream, ranges);
  return { read, parts: newestParts(blocks, { from: 0, to: Number.POSITIVE_INFINITY }) };
}
