/**
 * The small documents in the object store from which the records of an empty Redis are rebuilt:
 *
 *     jobs/<job>/spec.json         what was asked for; written before the record is made
 *     jobs/<job>/desired.json      what people want of the job now; its first version says that the job was accepted
 *     jobs/<job>/result.json       how it ended
 *     jobs/<job>/deleted.json      that it was deleted: it is not rebuilt (deletion.ts)
 *     projects/<project>/quota.json                what it may use
 *     datasets/<dataset>/dataset.json, models/<model>/MODEL.json      the records of what lies beside them
 *
 * Who writes them holds the record in Redis to be the truth; they only follow it. Readers check the form, and believe what is
 * in it, for nobody else writes them.
 */
import {
  type Dataset,
  datasetDocumentKey,
  type FinalJobState,
  type Job,
  type Model,
  modelDocumentKey,
  type ProjectQuota,
  quotaDocumentKey,
  type ResolvedJobSpec,
  ZerofleetError,
} from '../../contracts/index.js';
import { desiredKey, resultKey, specKey } from '../../platform/checkpoint/layout.js';
import { ObjectStoreError } from '../../platform/object-store/common/errors.js';
import { getIfThere } from '../../platform/object-store/common/get-if-there.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { Check, type Static, type TSchema, Type } from '../../platform/schema.js';
import type { Desired, JobRequests } from '../../state/index.js';

const Text = Type.String({ minLength: 1 });
const Count = Type.Integer({ minimum: 0 });
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const oneOf = <T extends string>(names: readonly T[]) => Type.Unsafe<T>({ type: 'string', enum: [...names] });
/** A document of the contract, which was checked when it was made. */
const made = <T>(required: readonly (keyof T & string)[]) =>
  Type.Unsafe<T>({ type: 'object', required: [...required] });

export const SpecDocument = Type.Object({
  /** 1: without `idempotency`, and without a desired.json from the start. */
  format_version: Type.Union([Type.Literal(1), Type.Literal(2)]),
  job_id: Text,
  spec: made<ResolvedJobSpec>(['model', 'data', 'train', 'resources']),
  /** The request's idempotency key as the job store keeps it, so that a repeated request still makes no second job. */
  idempotency: Type.Optional(nullable(Type.Object({ id: Text, body_hash: Text }))),
});
export type SpecDocument = Static<typeof SpecDocument>;

export const DesiredDocument = Type.Object({
  format_version: Type.Literal(1),
  job_id: Text,
  desired: oneOf<Desired>(['run', 'pause', 'cancel']),
  reason: nullable(Text),
  /** Ranks that the next attempt should have. */
  ranks: Type.Integer({ minimum: 1 }),
  /** The job's epoch when this was written: no later record may begin below it. */
  epoch: Count,
  at: Text,
});
export type DesiredDocument = Static<typeof DesiredDocument>;

export const ResultDocument = Type.Object({
  job_id: Text,
  state: oneOf<Exclude<FinalJobState, 'cancelled'>>(['succeeded', 'failed']),
  /** Of the worker that wrote it. */
  epoch: Count,
  step: Count,
  total_steps: Count,
  state_digest: nullable(Text),
  checkpoint: nullable(Text),
  metrics: nullable(made<NonNullable<Job['progress']>>(['step', 'total_steps'])),
  export: nullable(made<NonNullable<Job['export']>>(['prefix'])),
  failure: nullable(made<NonNullable<Job['failure']>>(['code', 'message'])),
  finished_at: Text,
});
export type ResultDocument = Static<typeof ResultDocument>;

const DatasetDocument = Type.Object({
  format_version: Type.Literal(1),
  dataset: made<Dataset>(['id', 'format', 'digest', 'bytes']),
});
const QuotaDocument = Type.Object({
  format_version: Type.Literal(1),
  project: Text,
  quota: made<ProjectQuota>(['max_jobs', 'max_ranks', 'max_storage_bytes']),
});
const ModelDocument = Type.Object({
  format_version: Type.Literal(1),
  model: made<Model>(['id', 'config', 'files']),
});

export function putSpec(objects: ObjectStore, document: Omit<SpecDocument, 'format_version'>): Promise<void> {
  return putDocument(objects, specKey(document.job_id), { format_version: 2, ...document });
}

/** Keeps the job's document as it was changed. */
export async function replaceSpec(objects: ObjectStore, jobId: string, spec: ResolvedJobSpec): Promise<void> {
  const stored = await getIfThere(objects, specKey(jobId));
  await putSpec(objects, { job_id: jobId, idempotency: stored && parseSpec(stored).idempotency, spec });
}

/** What people want of a job in this state. */
function desiredIn(state: Job['state']): Desired {
  if (state === 'paused' || state === 'pausing') return 'pause';
  return state === 'cancelling' || state === 'cancelled' ? 'cancel' : 'run';
}

/**
 * Says that a job was recorded: from here on it is rebuilt even if it never ran. Leaves a desired.json that is there already
 * alone, which is newer.
 */
export async function putAccepted(objects: ObjectStore, job: Job): Promise<void> {
  try {
    await putDocument(objects, desiredKey(job.id), desiredOf(job), { createOnly: true });
  } catch (error) {
    if (!(error instanceof ObjectStoreError && error.code === 'precondition_failed')) throw error;
  }
}

/** Keeps what people, or the job's limits, want of it: what its record says. */
export function putDesired(objects: ObjectStore, job: Job): Promise<void> {
  return putDocument(objects, desiredKey(job.id), desiredOf(job));
}

/**
 * Keeps what is wanted of a job that has changed. Of two changes at once the later one may be written first, so whoever writes looks
 * whether what it wrote is what the job store says, and writes again until it is.
 */
export async function keepDesired(
  { store, objects }: { store: Pick<JobRequests, 'getJob'>; objects: ObjectStore },
  changed: Job,
): Promise<void> {
  for (let job: Job | null = changed; job !== null; ) {
    await putDesired(objects, job);
    const now: Job | null = await store.getJob(job.id);
    job = now?.state_version === job.state_version ? null : now;
  }
}

export function putResult(objects: ObjectStore, result: ResultDocument): Promise<void> {
  return putDocument(objects, resultKey(result.job_id), result);
}

export function putDatasetDocument(objects: ObjectStore, dataset: Dataset): Promise<void> {
  return putDocument(objects, datasetDocumentKey(dataset.id), { format_version: 1, dataset });
}

export function putModelDocument(objects: ObjectStore, model: Model): Promise<void> {
  return putDocument(objects, modelDocumentKey(model.id), { format_version: 1, model });
}

export function putQuotaDocument(objects: ObjectStore, project: string, quota: ProjectQuota): Promise<void> {
  return putDocument(objects, quotaDocumentKey(project), { format_version: 1, project, quota });
}

export const parseSpec = parser(SpecDocument);
export const parseDesired = parser(DesiredDocument);
export const parseResult = parser(ResultDocument);
export const parseDataset = parser(DatasetDocument);
export const parseQuota = parser(QuotaDocument);
export const parseModel = parser(ModelDocument);

/** States of jobs that no worker holds and that have no result. */
const NOBODYS: readonly Job['state'][] = ['queued', 'paused', 'cancelled'];

function desiredOf(job: Job): DesiredDocument {
  const at = new Date().toISOString();
  const { id: job_id, state, reason, requested_ranks: ranks } = job;
  // Whatever its last epoch left as its result does not count: the job was queued again since, or never ended there.
  const epoch = job.epoch + (NOBODYS.includes(state) ? 1 : 0);
  return { format_version: 1, job_id, desired: desiredIn(state), reason, ranks, epoch, at };
}

export async function putDocument(
  objects: ObjectStore,
  key: string,
  document: object,
  options: { createOnly?: boolean } = {},
): Promise<void> {
  const bytes = Buffer.from(`${JSON.stringify(document, null, 2)}\n`);
  await objects.put(key, bytes, { contentType: 'application/json', ...options });
}

/** A function that reads such a document; it throws ZerofleetError `document_invalid`. */
export function parser<T extends TSchema>(schema: T): (bytes: Uint8Array) => Static<T> {
  const check = new Check(schema);
  return (bytes) => {
    let value: unknown;
    try {
      value = JSON.parse(Buffer.from(bytes).toString('utf8'));
    } catch (error) {
      throw new ZerofleetError('document_invalid', `it is not JSON: ${String(error)}`);
    }
    if (check.fits(value)) return value;
    throw new ZerofleetError('document_invalid', `it is malformed: ${check.problems().join('; ')}`);
  };
}
