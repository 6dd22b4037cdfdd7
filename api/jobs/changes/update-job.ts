import { type Job, type JobPatch, type ResolvedJobSpec, ZerofleetError } from '../../../contracts/index.js';
import { patchSpec } from '../../../job-document/index.js';
import type { ObjectStore } from '../../../platform/object-store/common/port.js';
import { type Condition, type JobStore, keepDesired, keepSpec } from '../../../state/index.js';
import { findJob } from '../../access/found.js';
import { invalidDocument } from '../check-spec.js';

/** Maximum number of optimistic attempts to read, change and write the job. */
const TRIES = 20;

interface Stores {
  store: Pick<JobStore, 'getJob' | 'updateJob'>;
  objects: ObjectStore;
  /** @throws ZerofleetError `insufficient_memory` */
  requireFit: (spec: ResolvedJobSpec) => Promise<void>;
}

/**
 * Changes a job's document in the job store, then in the object store.
 * @throws ZerofleetError `job_not_found`, `validation_failed`, `job_final`, `version_mismatch`, `insufficient_memory`
 */
export async function updateJob(
  stores: Stores,
  id: string,
  patch: JobPatch,
  condition: Condition,
): Promise<Job> {
  const job = await change(stores, id, patch, condition);
  await keepDesired(stores, job);
  await keepSpec(stores, job);
  return job;
}

async function change(
  { store, requireFit }: Stores,
  id: string,
  patch: JobPatch,
  { if_versions }: Condition,
): Promise<Job> {
  for (let tries = 1; ; tries += 1) {
    const before = await findJob(store, id);
    if (if_versions && !if_versions.includes(before.state_version))
      throw new ZerofleetError('version_mismatch', `${id} is at state_version ${before.state_version}`);
    const { errors, ...changes } = patchSpec(before.spec, patch, {
      requested_ranks: before.requested_ranks,
      steps_done: before.progress.step,
    });
    if (errors.length > 0) throw invalidDocument(errors);
    // A repeated request; the first one may have been interrupted after this write.
    if (changes.changed.length === 0 && changes.requested_ranks === before.requested_ranks) return before;
    if (changes.changed.includes('resources')) await requireFit(changes.spec);
    try {
      return await store.updateJob({ before, ...changes });
    } catch (error) {
      const changed = error instanceof ZerofleetError && error.code === 'version_mismatch';
      if (!changed || tries === TRIES) throw error;
    }
  }
}
