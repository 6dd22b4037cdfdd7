import type { CheckpointSource, FieldError, FieldErrorCode } from '../../contracts/index.js';
import { MANIFEST_FILE } from '../../platform/checkpoint/layout.js';
import type { JobStorePort } from '../../platform/job-store/port.js';
import type { ObjectStore } from '../../platform/object-store/port.js';

/** What a job may begin with, or why not. */
export interface CheckpointLookup {
  source: CheckpointSource | null;
  errors: FieldError[];
}

/** For a document that names no checkpoint. */
export const NO_CHECKPOINT: CheckpointLookup = { source: null, errors: [] };

/**
 * The checkpoint that `model.init_from.checkpoint` names, with the document of its job.
 *
 * The manifest is asked for as well: it is the first that goes when somebody tidies up in the object store.
 *
 * @throws what the stores throw when they can't be asked
 */
export async function findSource(
  { store, objects }: { store: JobStorePort; objects: ObjectStore },
  id: string,
): Promise<CheckpointLookup> {
  const found = await store.findCheckpoint(id);
  if (found === null) return refusal('checkpoint_not_found', `there is no checkpoint ${id}`);
  const job = await store.getJob(found.job_id);
  const { checkpoint } = found;
  const manifest = checkpoint && (await objects.head(`${checkpoint.prefix}/${MANIFEST_FILE}`));
  if (checkpoint === null || job === null || manifest === null) {
    return refusal('checkpoint_gone', `checkpoint ${id} of job ${found.job_id} was removed`);
  }
  return { source: { checkpoint, spec: job.spec }, errors: [] };
}

function refusal(code: FieldErrorCode, message: string): CheckpointLookup {
  return { source: null, errors: [{ pointer: '/model/init_from/checkpoint', code, message }] };
}
