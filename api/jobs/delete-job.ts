import { ZerofleetError } from '../../contracts/index.js';
import type { Condition, DeletedJob, JobStorePort } from '../../platform/job-store/port.js';
import type { Logger } from '../../platform/logging.js';
import type { ObjectStore } from '../../platform/object-store/port.js';
import { removeJobObjects } from '../../platform/recovery/deletion.js';
import type { ProjectRecords } from '../access/project-records.js';
import { Periodic } from '../periodic.js';

const INTERVAL_MS = 60_000;

export interface DeletionStores {
  store: Pick<JobStorePort, 'listDeletedJobs' | 'forgetDeletedJob'>;
  objects: ObjectStore;
}

/**
 * Deletes a job that has ended: its record first, then its objects. What is cut off is finished by `finishDeletions`, or by the
 * same request made again.
 * @param records the job store as the project of the request sees it
 * @throws ZerofleetError `job_not_found`, `invalid_state`, `version_mismatch`, `checkpoint_held`, `checkpoint_pinned`
 */
export async function deleteJob(
  stores: DeletionStores,
  records: ProjectRecords,
  id: string,
  options: { artifacts: boolean } & Condition,
): Promise<void> {
  try {
    await records.deleteJob(id, options);
  } catch (error) {
    if (!(error instanceof ZerofleetError) || error.code !== 'job_not_found') throw error;
    const begun = (await stores.store.listDeletedJobs()).find((job) => job.id === id);
    if (begun?.project !== records.project) throw error;
    return finish(stores, begun);
  }
  return finish(stores, { id, artifacts: options.artifacts });
}

/** Finishes deletions that were cut off. Several servers may do it at once. */
export function finishDeletions(
  options: DeletionStores & { log: Logger },
  interval_ms = INTERVAL_MS,
): Periodic {
  const { log, ...stores } = options;
  const work = async () => {
    for (const job of await stores.store.listDeletedJobs()) await finish(stores, job);
  };
  return new Periodic(work, interval_ms, (error) => log.warn({ err: error }, 'deletions not finished'));
}

async function finish(
  { store, objects }: DeletionStores,
  job: Pick<DeletedJob, 'id' | 'artifacts'>,
): Promise<void> {
  await removeJobObjects(objects, job);
  await store.forgetDeletedJob(job.id);
}
