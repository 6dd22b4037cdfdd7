import { ulid } from 'ulid';
import { type ResolvedJobSpec, ZerofleetError } from '../../contracts/index.js';
import { specKey } from '../../platform/checkpoint/layout.js';
import type { CreateJobResult, IdempotencyInput, JobStorePort } from '../../platform/job-store/port.js';
import type { ObjectStore } from '../../platform/object-store/port.js';

export interface RecordJobInput {
  spec: ResolvedJobSpec;
  idempotency?: IdempotencyInput;
}

/**
 * Records a job: its document in the object store first, so that whatever is queued can be rebuilt from there, then the
 * record with its queue entry in the job store.
 *
 * @throws what the stores throw; after `job_store_unavailable` the document stays, because the record may have been made
 */
export async function recordJob(
  { store, objects }: { store: Pick<JobStorePort, 'createJob'>; objects: ObjectStore },
  input: RecordJobInput,
): Promise<CreateJobResult> {
  const id = `job_${ulid()}`;
  const document = { format_version: 1, job_id: id, spec: input.spec };
  await objects.put(specKey(id), Buffer.from(`${JSON.stringify(document, null, 2)}\n`), {
    contentType: 'application/json',
  });
  const discard = () => objects.delete([specKey(id)]).catch(() => undefined);
  try {
    const result = await store.createJob({ id, ...input });
    // A replay is answered with the job of the first request, so this document belongs to no job.
    if (result.replayed) await discard();
    return result;
  } catch (error) {
    const refused = error instanceof ZerofleetError && error.code !== 'job_store_unavailable';
    if (refused) await discard();
    throw error;
  }
}
