import { type Job, ZerofleetError } from '../../contracts/index.js';
import type { JobStorePort } from '../../state/index.js';

/** @throws ZerofleetError `job_not_found` */
export async function findJob(store: Pick<JobStorePort, 'getJob'>, id: string): Promise<Job> {
  const job = await store.getJob(id);
  if (job === null) throw new ZerofleetError('job_not_found', `there is no job ${id}`);
  return job;
}
