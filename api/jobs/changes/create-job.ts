import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type FieldError,
  type JobSpec,
  type ResolvedJobSpec,
  traceHeaders,
} from '../../../contracts/index.js';
import { allProblems } from '../../../graders/graders.js';
import { jobWarnings } from '../../../job-document/index.js';
import { documentHash } from '../../../platform/canonical-json.js';
import type { CreateJobResult, IdempotencyInput, JobStore } from '../../../state/index.js';
import { sendJob } from '../../http/etag.js';
import { findFolder, findObject, findTokenizerObject } from '../bucket-lookups.js';
import type { SpecLookups } from '../check-spec.js';
import { findSource } from '../init-source.js';
import { namesUri, readySpec } from '../ready-spec.js';
import { rankBudget, requireFit } from '../require-fit.js';
import { templateFault } from '../template-fault.js';
import { recordJob } from './record-job.js';

/**
 * Creates the job of a document, or finds the one that an earlier request with the same `Idempotency-Key` created.
 * @throws errors of `readySpec`, `requireFit` and `recordJob`
 */
export async function createJob(
  request: FastifyRequest,
  reply: FastifyReply,
  { document, schemaErrors }: { document: JobSpec; schemaErrors: FieldError[] },
): Promise<CreateJobResult> {
  const { headers, records } = request;
  const idempotency = idempotencyOf({ headers, records, body: document });
  const created = await createdBefore(request, document, idempotency);
  if (created !== null) return created;
  const find = specLookups(request);
  const spec = await readySpec(request, reply, { document, schemaErrors, find });
  return record(request, { spec, given: document }, idempotency);
}

/**
 * The job of a repeated request. It is looked up before URIs are resolved, because their objects may have changed or
 * disappeared.
 */
export async function createdBefore(
  { records }: Pick<FastifyRequest, 'records'>,
  document: unknown,
  { idempotency }: { idempotency?: IdempotencyInput },
): Promise<CreateJobResult | null> {
  if (idempotency === undefined || !namesUri(document)) return null;
  const job = await records.findCreated(idempotency);
  return job && { job, replayed: true };
}

/** @throws errors of `recordJob`; `insufficient_memory` */
export async function record(
  request: Pick<FastifyRequest, 'records' | 'server' | 'trace'>,
  job: { spec: ResolvedJobSpec; given: JobSpec },
  idempotency: { idempotency?: IdempotencyInput },
): Promise<CreateJobResult> {
  const { records: store, server, trace } = request;
  const { objects } = server.services;
  await requireFit(request, job.spec).catch(unlessCreated(store, idempotency));
  return recordJob({ store, objects }, { ...job, trace: traceHeaders(trace), ...idempotency });
}

/** @param document the unresolved document of the job, if there is one */
export function sendCreated(reply: FastifyReply, { job, replayed }: CreateJobResult, document?: JobSpec) {
  if (replayed) reply.header('idempotent-replayed', 'true');
  reply.code(201).header('location', `/v1/jobs/${job.id}`);
  const warnings = document === undefined ? [] : jobWarnings(document, job.spec);
  return sendJob(reply, warnings.length === 0 ? job : { ...job, warnings });
}

export function specLookups(request: Pick<FastifyRequest, 'records' | 'server' | 'principal'>): SpecLookups {
  const { records: store, server } = request;
  const { objects, contract, graders, closing } = server.services;
  return {
    project: store.project,
    dataset: (id) => store.getDataset(id),
    object: findObject(request),
    folder: findFolder(request),
    tokenizer: findTokenizerObject(request),
    model: (id) => store.getModel(id),
    template: templateFault(request),
    budget: rankBudget(request),
    webhook: async (id) => (await server.services.store.getWebhook(store.project, id)) !== null,
    grader: (given) => allProblems(given, { runtime: graders, project: store.project, signal: closing }),
    integration: (given) => server.services.trackers.faultOf(given, store.project),
    source: (from) => findSource({ store, objects }, from),
    schemaErrors: contract.jobSpecErrors,
  };
}

/** @param route scope of the idempotency key: the same text for another route is another key */
export function idempotencyOf(
  request: Pick<FastifyRequest, 'headers' | 'records' | 'body'>,
  route = 'createJob',
): { idempotency?: IdempotencyInput } {
  const key = request.headers['idempotency-key'];
  if (typeof key !== 'string') return {};
  // All API keys of a project share their idempotency keys: a client may rotate its API key.
  return {
    idempotency: { scope: `${request.records.project}:${route}`, key, body_hash: documentHash(request.body) },
  };
}

/** Skips a check for a repeated request: its answer does not depend on the GPUs present now. */
function unlessCreated(
  store: Pick<JobStore, 'findCreated'>,
  { idempotency }: { idempotency?: IdempotencyInput },
): (error: unknown) => Promise<void> {
  return async (error) => {
    if (idempotency === undefined || (await store.findCreated(idempotency)) === null) throw error;
  };
}
