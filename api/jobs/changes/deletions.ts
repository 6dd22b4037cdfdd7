import { ZerofleetError } from '../../../contracts/index.js';
import { removeJobObjects } from '../../../control/recovery/deletion.js';
import { removeFolder } from '../../../formats/checkpoint/remove-folder.js';
import type { Logger } from '../../../platform/logging/logging.js';
import type { ObjectStore } from '../../../platform/object-store/common/port.js';
import { Periodic } from '../../../platform/process/periodic.js';
import type { Condition, DeletedCheckpoint, DeletedJob, JobStore } from '../../../state/index.js';
import { found } from '../../access/found.js';
import type { ProjectRecords } from '../../access/project-records.js';

const INTERVAL_MS = 60_000;

interface DeletionStores {
  store: Pick<
    JobStore,
    'listDeletedJobs' | 'forgetDeletedJob' | 'listDeletedCheckpoints' | 'forgetDeletedCheckpoint'
  >;
  objects: ObjectStore;
}

/**
 * Deletes a finished job: its record first, then its objects. An interrupted deletion is completed by `finishDeletions`
 * or by repeating the request.
 * @param records the job store, scoped to the request's project
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

/**
 * Deletes a checkpoint in the same way as `deleteJob`.
 * @throws ZerofleetError `checkpoint_not_found`, `checkpoint_pinned`, `checkpoint_held`, `checkpoint_in_use`
 */
export async function deleteCheckpoint(
  stores: DeletionStores,
  records: ProjectRecords,
  id: string,
): Promise<void> {
  const { store } = stores;
  const deleted =
    (await records.deleteCheckpoint(id)) ??
    (await store.listDeletedCheckpoints()).find((one) => one.id === id && one.project === records.project);
  return finishCheckpoint(stores, found(deleted, 'checkpoint', id));
}

/** Completes interrupted deletions; one failure does not stop the others. Several servers may do it concurrently. */
export function finishDeletions(
  options: DeletionStores & { log: Logger },
  intervalMs = INTERVAL_MS,
): Periodic {
  const { log, ...stores } = options;
  const { store } = stores;
  const onError = (error: unknown) => log.warn({ err: error }, 'deletion not completed');
  const work = async () => {
    for (const checkpoint of await store.listDeletedCheckpoints())
      await finishCheckpoint(stores, checkpoint).catch(onError);
    for (const job of await store.listDeletedJobs()) await finish(stores, job).catch(onError);
  };
  return new Periodic(work, intervalMs, onError);
}

async function finish(
  { store, objects }: DeletionStores,
  job: Pick<DeletedJob, 'id' | 'artifacts'>,
): Promise<void> {
  await removeJobObjects(objects, job);
  await store.forgetDeletedJob(job.id);
}

async function finishCheckpoint(
  { store, objects }: DeletionStores,
  { id, prefix }: Pick<DeletedCheckpoint, 'id' | 'prefix'>,
): Promise<void> {
  await removeFolder(objects, prefix);
  await store.forgetDeletedCheckpoint(id);
}
