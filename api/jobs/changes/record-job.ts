import {
  type JobSpec,
  type ResolvedJobSpec,
  type TraceHeaders,
  ZerofleetError,
} from '../../../contracts/index.js';
import { specKey } from '../../../formats/checkpoint/layout.js';
import { type ObjectStore, ObjectStoreError } from '../../../platform/object-store/index.js';
import { newUlid } from '../../../platform/random.js';
import {
  type CreateJobResult,
  type IdempotencyInput,
  idempotencyEntry,
  type JobStore,
  putAccepted,
  putSpec,
} from '../../../state/index.js';

interface RecordJobInput {
  /** `job_<ulid>`, for a caller that repeats the call; by default a new one. */
  id?: string;
  spec: ResolvedJobSpec;
  /** The document before it was resolved. */
  given: JobSpec;
  trace?: TraceHeaders;
  idempotency?: IdempotencyInput;
}

/**
 * Records a job in three steps:
 * 1. its document in the object store, so that a queued job can be rebuilt from there;
 * 2. the record and its queue entry in the job store;
 * 3. the acceptance document, without which `recover` skips the job because it was never acknowledged.
 *
 * @throws errors of the stores; after `job_store_unavailable` and errors of the object store the document stays,
 *   because the record may exist
 */
export async function recordJob(
  { store, objects }: { store: Pick<JobStore, 'createJob'>; objects: ObjectStore },
  { given, id: givenId, ...input }: RecordJobInput,
): Promise<CreateJobResult> {
  const id = givenId ?? `job_${newUlid()}`;
  await putSpec(objects, { job_id: id, spec: input.spec, given, idempotency: idempotencyOf(input) });
  // A repeated call may create the job after the refusal of this one; the garbage collector removes what no job needs.
  const discard = async () =>
    givenId === undefined && (await objects.delete([specKey(id)]).catch(() => undefined));
  try {
    const result = await store.createJob({ id, ...input });
    // A replay is answered with the job of the first request, so this document belongs to no job.
    if (result.replayed) await discard();
    // Also for a replay: the first request may have been interrupted before this write.
    await putAccepted(objects, result.job);
    return result;
  } catch (error) {
    const refused =
      error instanceof ZerofleetError &&
      !(error instanceof ObjectStoreError) &&
      error.code !== 'job_store_unavailable';
    if (refused) await discard();
    throw error;
  }
}

function idempotencyOf({
  idempotency,
}: Pick<RecordJobInput, 'idempotency'>): { id: string; body_hash: string } | null {
  if (!idempotency) return null;
  const { id, body_hash } = idempotencyEntry(idempotency);
  return { id, body_hash };
}
