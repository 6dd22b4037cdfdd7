import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type Job,
  type JobSpec,
  type ResolvedJobSpec,
  traceHeaders,
  ZerofleetError,
} from '../../../contracts/index.js';
import { documentHash } from '../../../platform/canonical-json.js';
import { jobWarnings } from '../../../spec/index.js';
import type { CreateJobResult, IdempotencyInput, JobStorePort } from '../../../state/index.js';
import { bodyErrors } from '../../http/body-errors.js';
import { sendJob, sendJobs } from '../../http/etag.js';
import { onClosed } from '../../http/long-request.js';
import { checkSpec, type SpecLookups } from '../../jobs/check-spec.js';
import { estimateOf } from '../../jobs/estimate.js';
import { findSource } from '../../jobs/init-source.js';
import { lookForFolder, lookForObject, lookForTokenizer } from '../../jobs/look-in-buckets.js';
import { namesUri, plannedSpec, readySpec } from '../../jobs/ready-spec.js';
import { recordJob } from '../../jobs/record-job.js';
import { requireFit } from '../../jobs/require-fit.js';
import { templateFault } from '../../jobs/template-fault.js';
import { workOf } from '../../jobs/work.js';
import type { OperationHandler, OperationRequest } from '../types.js';

/** The data of a job are prepared before anything else, so this is among its first events. */
const EVENTS_READ = 100;

export const createJob: OperationHandler<'createJob'> = async (request, reply) => {
  const schemaErrors = bodyErrors(request);
  const find = specLookups(request);
  if (request.query.dry_run) {
    const checked = await checkSpec(request.body, schemaErrors, find);
    await requireFit(request, checked.spec);
    const { store } = request.server.services;
    const events = async (id: string) =>
      (await store.readStream(id, null, EVENTS_READ, ['event'])).filter((entry) => entry.kind === 'event');
    return reply.code(200).send({
      spec: plannedSpec(checked),
      estimate: estimateOf(checked.spec),
      work: await workOf(checked.spec, { records: request.records, events }),
      warnings: jobWarnings(request.body),
    });
  }
  const created = await createdBefore(request, request.body, idempotencyOf(request));
  if (created !== null) return sendCreated(reply, created, request.body);
  const spec = await readySpec(request, reply, { document: request.body, schemaErrors, find });
  return sendCreated(reply, await record(request, spec, idempotencyOf(request)), request.body);
};

/** What a request made that is repeated, where its document names by URI what may be another thing, or gone, by now. */
export async function createdBefore(
  { records }: Pick<FastifyRequest, 'records'>,
  document: unknown,
  { idempotency }: { idempotency?: IdempotencyInput },
): Promise<CreateJobResult | null> {
  if (idempotency === undefined || !namesUri(document)) return null;
  const job = await records.findCreated(idempotency);
  return job && { job, replayed: true };
}

/** @throws what `recordJob` throws; `does_not_fit` */
export async function record(
  request: Pick<FastifyRequest, 'records' | 'server' | 'trace'>,
  spec: ResolvedJobSpec,
  idempotency: { idempotency?: IdempotencyInput },
): Promise<CreateJobResult> {
  const { records: store, server, trace } = request;
  const { objects } = server.services;
  await requireFit(request, spec).catch(unlessCreated(store, idempotency));
  return recordJob({ store, objects }, { spec, trace: traceHeaders(trace), ...idempotency });
}

/** A request that is repeated is answered as it was at first, whichever GPUs are there by now. */
function unlessCreated(
  store: Pick<JobStorePort, 'findCreated'>,
  { idempotency }: { idempotency?: IdempotencyInput },
): (error: unknown) => Promise<void> {
  return async (error) => {
    if (idempotency === undefined || (await store.findCreated(idempotency)) === null) throw error;
  };
}

/** @param document that the job was made of, where there is one */
export function sendCreated(reply: FastifyReply, { job, replayed }: CreateJobResult, document?: JobSpec) {
  if (replayed) reply.header('idempotent-replayed', 'true');
  reply.code(201).header('location', `/v1/jobs/${job.id}`);
  const warnings = document === undefined ? [] : jobWarnings(document);
  return sendJob(reply, warnings.length === 0 ? job : { ...job, warnings });
}

export function specLookups(request: Pick<FastifyRequest, 'records' | 'server' | 'apiKey'>): SpecLookups {
  const { records: store, server } = request;
  const { objects, contract } = server.services;
  return {
    project: store.project,
    dataset: (id) => store.getDataset(id),
    object: lookForObject(request),
    folder: lookForFolder(request),
    tokenizer: lookForTokenizer(request),
    model: (id) => store.getModel(id),
    template: templateFault(request),
    webhook: async (id) => (await server.services.store.getWebhook(store.project, id)) !== null,
    source: (from) => findSource({ store, objects }, from),
    schemaErrors: contract.jobSpecErrors,
  };
}

export const listJobs: OperationHandler<'listJobs'> = async (request, reply) =>
  sendJobs(reply, await request.records.listJobs(request.query));

export const getJob: OperationHandler<'getJob'> = async (request, reply) => {
  const { records } = request;
  const { job_id: id } = request.params;
  const { wait, since_version } = request.query;
  const job = await findJob(records, id);
  const ifNoneMatch = request.headers['if-none-match'];
  if (wait === undefined) return sendJob(reply, job, ifNoneMatch);
  const gone = new AbortController();
  onClosed(reply, () => gone.abort());
  await records.waitVersion(id, since_version ?? job.state_version, {
    timeoutMs: Number.parseInt(wait, 10) * 1000,
    signal: AbortSignal.any([gone.signal, request.server.services.closing]),
  });
  return sendJob(reply, await findJob(records, id), ifNoneMatch);
};

/** @throws ZerofleetError `job_not_found` */
export async function findJob(store: Pick<JobStorePort, 'getJob'>, id: string): Promise<Job> {
  const job = await store.getJob(id);
  if (job === null) throw new ZerofleetError('job_not_found', `there is no job ${id}`);
  return job;
}

/** @param route what the key is for: the same text for another route is another key */
export function idempotencyOf(
  request: Pick<OperationRequest<'createJob'>, 'headers' | 'records'> & { body: unknown },
  route = 'createJob',
): { idempotency?: IdempotencyInput } {
  const key = request.headers['idempotency-key'];
  if (typeof key !== 'string') return {};
  // All API keys of a project share their idempotency keys: a client may rotate its API key.
  return {
    idempotency: { scope: `${request.records.project}:${route}`, key, body_hash: documentHash(request.body) },
  };
}
