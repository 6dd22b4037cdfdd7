/** Requests that change what a job does, as functions that several routes call. */
import type { FastifyRequest } from 'fastify';
import { type FieldError, type Job, ZerofleetError } from '../../../contracts/index.js';
import { checkMultiple } from '../../../job-document/index.js';
import type { ObjectStore } from '../../../platform/object-store/common/port.js';
import { type Condition, type JobStore, keepDesired, putDesired } from '../../../state/index.js';
import { findJob } from '../../access/found.js';
import { requireFit, withRanks } from '../require-fit.js';

type Asking = Pick<FastifyRequest, 'records' | 'server'>;

export async function cancelJob(request: Asking, id: string, condition: Condition = {}): Promise<Job> {
  const { records: store } = request;
  const cancelled = store.requestCancel(id, condition);
  const job = await cancelled.catch((error: unknown) => cancelledBefore(store, id, error));
  await keepDesired(storesOf(request), job);
  return job;
}

export async function pauseJob(request: Asking, id: string, condition: Condition = {}): Promise<Job> {
  const job = await request.records.requestPause(id, condition);
  await keepDesired(storesOf(request), job);
  return job;
}

/** @param ranks absent for the present number */
export async function resumeJob(
  request: Asking,
  id: string,
  { ranks, ...condition }: Condition & { ranks?: number | undefined } = {},
): Promise<Job> {
  const { records: store } = request;
  const job = await findJob(store, id);
  refuseOther(job, condition);
  if (ranks !== undefined) await requireRanks(request, job, ranks);
  const options = { ...condition, ...(ranks === undefined ? {} : { ranks }) };
  const asked = { ...job, requested_ranks: ranks ?? job.requested_ranks };
  return queueAgain(storesOf(request), asked, 'paused', () => store.resumeJob(job.id, options));
}

export async function resizeJob(
  request: Asking,
  id: string,
  { ranks, ...condition }: Condition & { ranks: number },
): Promise<Job> {
  const { records: store } = request;
  const job = await findJob(store, id);
  await requireRanks(request, job, ranks);
  const resized = await store.requestResize(job.id, ranks, condition);
  await keepDesired(storesOf(request), resized);
  return resized;
}

export async function retryJob(request: Asking, id: string, condition: Condition = {}): Promise<Job> {
  const { records: store } = request;
  const job = await findJob(store, id);
  refuseOther(job, condition);
  await requireFit(request, withRanks(job.spec, job.requested_ranks));
  return queueAgain(storesOf(request), job, 'failed', () => store.retryJob(job.id, condition));
}

/**
 * Queues a job again. The desired state is stored first: after a loss of Redis, a job that works again must not be
 * restored as paused or failed. It is stored again afterwards, because the request may have been refused or the job
 * changed concurrently.
 * @param from the state from which `queue` leads to the queue
 */
export async function queueAgain(
  stores: { store: Pick<JobStore, 'getJob'>; objects: ObjectStore },
  job: Job,
  from: Job['state'],
  queue: () => Promise<Job>,
): Promise<Job> {
  if (job.state !== from) return queue();
  await putDesired(stores.objects, { ...job, state: 'queued' });
  const queued = await queue().catch(async (error: unknown) => {
    const now = await stores.store.getJob(job.id);
    if (now !== null) await keepDesired(stores, now);
    throw error;
  });
  await keepDesired(stores, queued);
  return queued;
}

function storesOf({ server, records: store }: Asking) {
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
