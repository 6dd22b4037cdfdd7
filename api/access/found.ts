import { type Checkpoint, type ErrorCode, type Job, ZerofleetError } from '../../contracts/index.js';
import type { JobStore } from '../../state/index.js';

const CODES = {
  job: 'job_not_found',
  dataset: 'dataset_not_found',
  model: 'model_not_found',
  checkpoint: 'checkpoint_not_found',
  upload: 'upload_not_found',
  webhook: 'webhook_not_found',
  sweep: 'sweep_not_found',
  share: 'share_not_found',
  'API key': 'api_key_not_found',
  'key, user or share': 'principal_not_found',
} as const satisfies Record<string, ErrorCode>;

type Kind = keyof typeof CODES;

/** Error for a record that does not exist, or not for this request. */
export function notFound(kind: Kind, id: string): ZerofleetError {
  return new ZerofleetError(CODES[kind], `there is no ${kind} ${id}`);
}

/** Error for a checkpoint that cannot be used. */
export function checkpointNotFound(message = 'there is no such checkpoint'): ZerofleetError {
  return new ZerofleetError('checkpoint_not_found', message);
}

/** Returns the record. @throws ZerofleetError `…_not_found` for null */
export function found<T>(record: T | null | undefined, kind: Kind, id: string): T {
  if (record === null || record === undefined) throw notFound(kind, id);
  return record;
}

/** @throws ZerofleetError `job_not_found` */
export async function findJob(store: Pick<JobStore, 'getJob'>, id: string): Promise<Job> {
  return found(await store.getJob(id), 'job', id);
}

/** @throws ZerofleetError `checkpoint_not_found`, also for one that was removed */
export async function findCheckpoint(
  store: Pick<JobStore, 'findCheckpoint'>,
  id: string,
): Promise<Checkpoint> {
  const { checkpoint, job_id } = found(await store.findCheckpoint(id), 'checkpoint', id);
  if (checkpoint === null) throw checkpointNotFound(`checkpoint ${id} of job ${job_id} was removed`);
  return checkpoint;
}
