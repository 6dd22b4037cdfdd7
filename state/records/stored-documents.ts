/**
 * Documents in the object store from which the records of an empty Redis are rebuilt:
 *
 *     jobs/<job>/spec.json         request; written before the record is created
 *     jobs/<job>/desired.json      desired state; its first version marks the job as accepted
 *     jobs/<job>/result.json       final result
 *     jobs/<job>/deleted.json      deletion marker: the job is not rebuilt (deletion.ts)
 *     projects/<project>/quota.json                quota
 *     datasets/<dataset>/dataset.json, models/<model>/MODEL.json      records of the objects beside them
 *     sweeps/<sweep>/sweep.json    record;  runs.json  documents of its runs
 *
 * The record in Redis is authoritative for writers; the documents follow it. Readers check the form and trust the
 * content, because no other program writes them.
 */
import {
  type Dataset,
  datasetDocumentKey,
  type FinalJobState,
  type Job,
  type JobSpec,
  type Model,
  modelDocumentKey,
  type ProjectQuota,
  quotaDocumentKey,
  type ResolvedJobSpec,
  sweepDocumentKey,
  sweepRunsKey,
  ZerofleetError,
} from '../../contracts/index.js';
import { desiredKey, resultKey, specKey } from '../../formats/checkpoint/layout.js';
import { ObjectStoreError } from '../../platform/object-store/common/errors.js';
import { getIfExists } from '../../platform/object-store/common/get-if-exists.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { Check, type Static, type TSchema, Type } from '../../platform/schema.js';
import type { Desired } from '../jobs/control.js';
import type { JobRequests } from '../jobs/requests.js';
import type { StoredSweep } from './sweeps.js';

const Text = Type.String({ minLength: 1 });
const Count = Type.Integer({ minimum: 0 });
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const oneOf = <T extends string>(names: readonly T[]) => Type.Unsafe<T>({ type: 'string', enum: [...names] });
/** Document of the contract that was validated when it was created. */
const contractDocument = <T>(required: readonly (keyof T & string)[]) =>
  Type.Unsafe<T>({ type: 'object', required: [...required] });

export const SpecDocument = Type.Object({
  /** 1: without `idempotency`, and without an initial desired.json. */
  format_version: Type.Union([Type.Literal(1), Type.Literal(2)]),
  job_id: Text,
  spec: contractDocument<ResolvedJobSpec>(['model', 'data', 'train', 'resources']),
  /** Document of the request, before it was resolved. Changes of the job leave it as it is. */
  given: Type.Optional(contractDocument<JobSpec>(['model', 'data'])),
  /**
   * Idempotency key of the request as the job store keeps it, so that a repeated request creates no second
   * job.
   */
  idempotency: Type.Optional(nullable(Type.Object({ id: Text, body_hash: Text }))),
});
export type SpecDocument = Static<typeof SpecDocument>;

export const DesiredDocument = Type.Object({
  format_version: Type.Literal(1),
  job_id: Text,
  desired: oneOf<Desired>(['run', 'pause', 'cancel']),
  reason: nullable(Text),
  /** Ranks requested for the next attempt. */
  ranks: Type.Integer({ minimum: 1 }),
  /** Epoch of the job at the time of writing, a lower bound for the epoch of a rebuilt record. */
  epoch: Count,
  at: Text,
});
export type DesiredDocument = Static<typeof DesiredDocument>;

export const ResultDocument = Type.Object({
  job_id: Text,
  state: oneOf<Exclude<FinalJobState, 'cancelled'>>(['succeeded', 'failed']),
  /** Reason of the state, as in the job's record. */
  reason: Text,
  /** Epoch of the worker that wrote it. */
  epoch: Count,
  step: Count,
  /** Null if the job ended before its samples were counted. */
  total_steps: nullable(Count),
  state_digest: nullable(Text),
  checkpoint: nullable(Text),
  metrics: nullable(contractDocument<NonNullable<Job['progress']>>(['step', 'total_steps'])),
  export: nullable(contractDocument<NonNullable<Job['export']>>(['prefix'])),
  failure: nullable(contractDocument<NonNullable<Job['failure']>>(['code', 'message'])),
  finished_at: Text,
});
export type ResultDocument = Static<typeof ResultDocument>;

const DatasetDocument = Type.Object({
  format_version: Type.Literal(1),
  dataset: contractDocument<Dataset>(['id', 'format', 'digest', 'bytes']),
});
const QuotaDocument = Type.Object({
  format_version: Type.Literal(1),
  project: Text,
  quota: contractDocument<ProjectQuota>(['max_jobs', 'max_ranks', 'max_storage_bytes']),
});
const ModelDocument = Type.Object({
  format_version: Type.Literal(1),
  model: contractDocument<Model>(['id', 'config', 'files']),
});

const SweepDocument = Type.Object({
  format_version: Type.Literal(1),
  sweep: contractDocument<StoredSweep>(['id', 'project', 'sweep', 'tasks']),
});
const SweepRunsDocument = Type.Object({
  format_version: Type.Literal(1),
  runs: Type.Array(
    Type.Object({
      job_id: Text,
      spec: contractDocument<ResolvedJobSpec>(['model', 'data', 'train', 'resources']),
      given: contractDocument<JobSpec>(['model', 'data']),
    }),
  ),
});
type SweepRunsDocument = Static<typeof SweepRunsDocument>;

export function putSpec(objects: ObjectStore, document: Omit<SpecDocument, 'format_version'>): Promise<void> {
  return putDocument(objects, specKey(document.job_id), { format_version: 2, ...document });
}

/** Stores a changed spec and keeps the request's document and idempotency key. */
async function replaceSpec(objects: ObjectStore, jobId: string, spec: ResolvedJobSpec): Promise<void> {
  const stored = await getIfExists(objects, specKey(jobId));
  const { given, idempotency = null } = stored === null ? {} : parseSpec(stored);
  await putSpec(objects, { job_id: jobId, idempotency, spec, ...(given && { given }) });
}

/** Returns the document of the request that created a job; null if none is stored. */
export async function readGiven(objects: ObjectStore, jobId: string): Promise<JobSpec | null> {
  const stored = await getIfExists(objects, specKey(jobId));
  return (stored && parseSpec(stored).given) ?? null;
}

/** Returns the desired state that a job state implies. */
function desiredIn(state: Job['state']): Desired {
  if (state === 'paused' || state === 'pausing') return 'pause';
  return state === 'cancelling' || state === 'cancelled' ? 'cancel' : 'run';
}

/**
 * Marks a job as accepted: from here on it is rebuilt even if it never ran. An existing desired.json, which
 * is newer, stays.
 */
export async function putAccepted(objects: ObjectStore, job: Job): Promise<void> {
  try {
    await putDocument(objects, desiredKey(job.id), desiredOf(job), { createOnly: true });
  } catch (error) {
    if (!(error instanceof ObjectStoreError && error.code === 'precondition_failed')) throw error;
  }
}

/** Stores the desired state of the job's record. */
export function putDesired(objects: ObjectStore, job: Job): Promise<void> {
  return putDocument(objects, desiredKey(job.id), desiredOf(job));
}

/** Stores the desired state of a changed job. */
export function keepDesired(stores: RecordAndDocuments, changed: Job): Promise<void> {
  return keep(stores, changed, (job) => putDesired(stores.objects, job));
}

/** Stores the spec of a changed job. */
export function keepSpec(stores: RecordAndDocuments, changed: Job): Promise<void> {
  return keep(stores, changed, ({ id, spec }) => replaceSpec(stores.objects, id, spec));
}

interface RecordAndDocuments {
  store: Pick<JobRequests, 'getJob'>;
  objects: ObjectStore;
}

/**
 * Stores a document of a changed job. Concurrent writers may write in the wrong order, so each one compares what it
 * wrote with the job store and writes again until both agree.
 */
async function keep(
  { store }: RecordAndDocuments,
  changed: Job,
  write: (job: Job) => Promise<void>,
): Promise<void> {
  for (let job: Job | null = changed; job !== null; ) {
    await write(job);
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

export function putSweepDocument(objects: ObjectStore, sweep: StoredSweep): Promise<void> {
  return putDocument(objects, sweepDocumentKey(sweep.id), { format_version: 1, sweep });
}

export function putSweepRuns(
  objects: ObjectStore,
  id: string,
  runs: SweepRunsDocument['runs'],
): Promise<void> {
  return putDocument(objects, sweepRunsKey(id), { format_version: 1, runs });
}

export const parseSpec = parser(SpecDocument);
export const parseDesired = parser(DesiredDocument);
export const parseResult = parser(ResultDocument);
export const parseDataset = parser(DatasetDocument);
export const parseQuota = parser(QuotaDocument);
export const parseModel = parser(ModelDocument);
export const parseSweep = parser(SweepDocument);
export const parseSweepRuns = parser(SweepRunsDocument);

/** States of jobs without a worker and without a result. */
const STATES_WITHOUT_WORKER: readonly Job['state'][] = ['queued', 'paused', 'cancelled'];

function desiredOf(job: Job): DesiredDocument {
  const at = new Date().toISOString();
  const { id: jobId, state, reason, requested_ranks: ranks } = job;
  // A result of the last epoch does not count: the job was queued again since, or never ended in that epoch.
  const epoch = job.epoch + (STATES_WITHOUT_WORKER.includes(state) ? 1 : 0);
  return { format_version: 1, job_id: jobId, desired: desiredIn(state), reason, ranks, epoch, at };
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

/** Returns a function that reads such a document and throws ZerofleetError `document_invalid`. */
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
