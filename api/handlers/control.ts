import { checkMultiple, type FieldError, type Job, ZerofleetError } from '../../contracts/index.js';
import type { Desired, JobStorePort } from '../../platform/job-store/port.js';
import { putDesired } from '../../platform/recovery/documents.js';
import { sendTagged } from '../http/etag.js';
import { findJob } from './jobs.js';
import type { OperationHandler } from './types.js';

export const cancelJob: OperationHandler<'cancelJob'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { records: store } = request;
  const { job_id: id } = request.params;
  const job = await store.requestCancel(id).catch((error: unknown) => cancelledBefore(store, id, error));
  await putDesired(objects, job, 'cancel');
  return sendTagged(reply.code(202), job);
};

export const pauseJob: OperationHandler<'pauseJob'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { records: store } = request;
  const job = await store.requestPause(request.params.job_id);
  await putDesired(objects, job, 'pause');
  return sendTagged(reply.code(202), job);
};

export const resumeJob: OperationHandler<'resumeJob'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { records: store } = request;
  const { ranks } = request.body;
  const job = await findJob(store, request.params.job_id);
  if (ranks !== undefined) refuseRanks(job, ranks);
  // Before it is queued: a job that works again must not be found paused after a loss of Redis.
  if (job.state === 'paused') await putDesired(objects, job, 'run', ranks === undefined ? {} : { ranks });
  const resumed = await store.resumeJob(job.id, ranks === undefined ? {} : { ranks });
  return sendTagged(reply.code(202), resumed);
};

export const resizeJob: OperationHandler<'resizeJob'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { records: store } = request;
  const { ranks } = request.body;
  const job = await findJob(store, request.params.job_id);
  refuseRanks(job, ranks);
  const resized = await store.requestResize(job.id, ranks);
  // Everything else that is wanted of it stays.
  await putDesired(objects, resized, desiredIn(resized.state), { reason: resized.reason });
  return sendTagged(reply.code(202), resized);
};

function desiredIn(state: Job['state']): Desired {
  if (state === 'paused' || state === 'pausing') return 'pause';
  return state === 'cancelling' ? 'cancel' : 'run';
}

/** A client that repeats a request whose reply was lost is told the same again. @throws `error` for any other job */
async function cancelledBefore(
  store: Pick<JobStorePort, 'getJob'>,
  id: string,
  error: unknown,
): Promise<Job> {
  if (error instanceof ZerofleetError && error.code === 'job_final') {
    const job = await findJob(store, id);
    if (job.state === 'cancelled') return job;
  }
  throw error;
}

function refuseRanks({ spec }: Job, ranks: number): void {
  const { min, max } = spec.resources.ranks;
  const [field] =
    ranks < min || ranks > max
      ? [outOfRange(ranks, min, max)]
      : checkMultiple('/ranks', ranks, spec.zero.expert_parallel_size);
  if (field !== undefined) throw new ZerofleetError('validation_failed', field.message, { fields: [field] });
}

function outOfRange(ranks: number, min: number, max: number): FieldError {
  return {
    pointer: '/ranks',
    code: 'ranks_out_of_range',
    message: `the job runs on ${min} to ${max} ranks, not on ${ranks}`,
    suggestion: String(ranks < min ? min : max),
  };
}
