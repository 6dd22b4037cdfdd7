import type { FastifyRequest } from 'fastify';
import { type FieldError, type Job, ZerofleetError } from '../../../contracts/index.js';
import { checkMultiple } from '../../../job-document/index.js';
import { type Condition, type JobStore, keepDesired, putDesired } from '../../../state/index.js';
import { findJob } from '../../access/found.js';
import { conditionOf, sendJob } from '../../http/etag.js';
import { requireFit, withRanks } from '../../jobs/require-fit.js';
import type { OperationHandler } from '../types.js';

export const cancelJob: OperationHandler<'cancelJob'> = async (request, reply) => {
  const { records: store } = request;
  const { job_id: id } = request.params;
  const condition = conditionOf(request.headers['if-match']);
  const job = await store
    .requestCancel(id, condition)
    .catch((error: unknown) => cancelledBefore(store, id, error));
  await keepDesired(storesOf(request), job);
  return sendJob(reply.code(202), job);
};

export const pauseJob: OperationHandler<'pauseJob'> = async (request, reply) => {
  const { records: store } = request;
  const job = await store.requestPause(request.params.job_id, conditionOf(request.headers['if-match']));
  await keepDesired(storesOf(request), job);
  return sendJob(reply.code(202), job);
};

export const resumeJob: OperationHandler<'resumeJob'> = async (request, reply) => {
  const { records: store } = request;
  const { ranks } = request.body;
  const condition = conditionOf(request.headers['if-match']);
  const job = await findJob(store, request.params.job_id);
  refuseOther(job, condition);
  if (ranks !== undefined) await requireRanks(request, job, ranks);
  const options = { ...condition, ...(ranks === undefined ? {} : { ranks }) };
  const asked = { ...job, requested_ranks: ranks ?? job.requested_ranks };
  const resumed = await queueAgain(request, asked, 'paused', () => store.resumeJob(job.id, options));
  return sendJob(reply.code(202), resumed);
};

export const resizeJob: OperationHandler<'resizeJob'> = async (request, reply) => {
  const { records: store } = request;
  const { ranks } = request.body;
  const job = await findJob(store, request.params.job_id);
  await requireRanks(request, job, ranks);
  const resized = await store.requestResize(job.id, ranks, conditionOf(request.headers['if-match']));
  await keepDesired(storesOf(request), resized);
  return sendJob(reply.code(202), resized);
};

export const retryJob: OperationHandler<'retryJob'> = async (request, reply) => {
  const { records: store } = request;
  const condition = conditionOf(request.headers['if-match']);
  const job = await findJob(store, request.params.job_id);
  refuseOther(job, condition);
  await requireFit(request, withRanks(job.spec, job.requested_ranks));
  const retried = await queueAgain(request, job, 'failed', () => store.retryJob(job.id, condition));
  return sendJob(reply.code(202), retried);
};

/**
 * Queues a job again. The desired state is stored first: after a loss of Redis, a job that works again must not be
 * restored as paused or failed. It is stored again afterwards, because the request may have been refused or the job
 * changed concurrently.
 * @param from the state from which `queue` leads to the queue
 */
async function queueAgain(
  request: FastifyRequest,
  job: Job,
  from: Job['state'],
  queue: () => Promise<Job>,
): Promise<Job> {
  if (job.state !== from) return queue();
  const stores = storesOf(request);
  await putDesired(stores.objects, { ...job, state: 'queued' });
  const queued = await queue().catch(async (error: unknown) => {
    const now = await stores.store.getJob(job.id);
    if (now !== null) await keepDesired(stores, now);
    throw error;
  });
  await keepDesired(stores, queued);
  return queued;
}

function storesOf({ server, records: store }: FastifyRequest) {
  return { store, objects: server.services.objects };
}

/** Repeats the answer for a client that retries after a lost reply. @throws `error` for any other job */
async function cancelledBefore(store: Pick<JobStore, 'getJob'>, id: string, error: unknown): Promise<Job> {
  if (error instanceof ZerofleetError && error.code === 'job_final') {
    const job = await findJob(store, id);
    if (job.state === 'cancelled') return job;
  }
  throw error;
}

/** Refuses another version of the job before the desired state is written. */
function refuseOther({ id, state_version }: Job, { if_versions }: Condition): void {
  if (if_versions === undefined || if_versions.includes(state_version)) return;
  throw new ZerofleetError('version_mismatch', `${id} is at state_version ${state_version}`);
}

/** @throws ZerofleetError `validation_failed`, `insufficient_memory` */
async function requireRanks(
  request: Pick<FastifyRequest, 'server'>,
  { spec }: Job,
  ranks: number,
): Promise<void> {
  const { min, max } = spec.resources.ranks;
  const [field] =
    ranks < min || ranks > max
      ? [outOfRange(ranks, min, max)]
      : checkMultiple('/ranks', ranks, spec.zero.expert_parallel_size);
  if (field !== undefined) throw new ZerofleetError('validation_failed', field.message, { fields: [field] });
  await requireFit(request, withRanks(spec, ranks));
}

function outOfRange(ranks: number, min: number, max: number): FieldError {
  return {
    pointer: '/ranks',
    code: 'ranks_out_of_range',
    message: `the job runs on ${min} to ${max} ranks, not on ${ranks}`,
    suggestion: String(ranks < min ? min : max),
  };
}
