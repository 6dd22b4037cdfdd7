/** Metrics of a job's steps as a result file. */
import type { FileObject } from 'openai/resources/files';
import type { Zerofleet } from '../../../clients/typescript/index.js';
import type { JobMetric } from '../../../contracts/index.js';
import { type JobStreams, metricsBetween } from '../../../state/index.js';
import { VALIDATION_FILE } from '../labels.js';
import { secondsOf } from '../pages.js';

const PREFIX = 'file-results-';

/** Returns the id of the file with a job's metrics. */
export function resultsId(job_id: string): string {
  return PREFIX + job_id;
}

/** Returns the job of a result file; null for another file. */
export function jobOfResults(file_id: string): string | null {
  return file_id.startsWith(PREFIX) ? file_id.slice(PREFIX.length) : null;
}

export async function resultsFile(
  api: Zerofleet,
  store: Pick<JobStreams, 'readSteps'>,
  job_id: string,
): Promise<FileObject> {
  const { updated_at } = await api.jobs.get(job_id);
  const csv = await resultsOf(api, store, job_id);
  return {
    id: resultsId(job_id),
    object: 'file',
    bytes: Buffer.byteLength(csv),
    created_at: secondsOf(updated_at),
    filename: 'step_metrics.csv',
    purpose: 'fine-tune-results',
    status: 'processed',
  };
}

/** One line for each step, with the columns of the hosted API that exist here. A step that was repeated is listed once. */
export async function resultsOf(
  api: Zerofleet,
  store: Pick<JobStreams, 'readSteps'>,
  job_id: string,
): Promise<string> {
  await api.jobs.get(job_id);
  const lines = new Map<number, string>();
  const steps = { from: 0, to: Number.POSITIVE_INFINITY };
  for await (const metric of metricsBetween(store, job_id, steps)) lines.set(metric.step, lineOf(metric));
  return `step,train_loss,valid_loss\n${[...lines.values()].join('')}`;
}

function lineOf({ step, loss, eval_losses }: JobMetric): string {
  return `${step},${loss ?? ''},${eval_losses?.[VALIDATION_FILE] ?? ''}\n`;
}
