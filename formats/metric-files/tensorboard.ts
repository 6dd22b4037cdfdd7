import type { Job, JobMetric } from '../../contracts/index.js';
import { eventRecord, FILE_VERSION } from './event-file.js';
import { valuesOf } from './values.js';

/** Reads the items of a file, again from the first one with each call. */
export type ReadMetrics = () => AsyncIterable<JobMetric>;

export type MeasuredJob = Pick<Job, 'id' | 'created_at'>;

/** Name of a job's event file. TensorBoard reads only files with `tfevents` in their names. */
export function eventFileName(job: MeasuredJob): string {
  return `events.out.tfevents.${Math.floor(createdSeconds(job))}.${job.id}`;
}

/**
 * An event file with the values of each item as scalars. A repeated step begins a session, so that the newest item
 * counts.
 */
export async function* eventRecords(read: ReadMetrics, job: MeasuredJob): AsyncGenerator<Uint8Array> {
  const created = createdSeconds(job);
  yield eventRecord({ wall_time: created, file_version: FILE_VERSION });
  yield eventRecord({ wall_time: created, starts_session: true });
  let last = 0;
  for await (const metric of read()) {
    const { step } = metric;
    const wallTime = Date.parse(metric.at) / 1000;
    if (step <= last) yield eventRecord({ wall_time: wallTime, step, starts_session: true });
    last = step;
    const scalars = valuesOf(metric).map(([tag, value]) => [tag, value ?? Number.NaN] as const);
    yield eventRecord({ wall_time: wallTime, step, scalars });
  }
}

const createdSeconds = ({ created_at }: MeasuredJob): number => Date.parse(created_at) / 1000;
