import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type CallAnswer,
  type CallReceipt,
  type CallSummary,
  isFinal,
  type Job,
  ZerofleetError,
} from '../../../contracts/index.js';
import { readCallResult, typeOfCall } from '../../../formats/calls/call-log.js';
import { callKey, callResultKey } from '../../../formats/checkpoint/layout.js';
import { type CallCounters, callCounters } from '../../../state/index.js';
import { findJob } from '../../access/found.js';
import { requireStorage } from '../../access/storage-quota.js';
import { appendCall, type StoredText } from '../../calls/append-call.js';
import { onClosed } from '../../http/long-request.js';
import { resumeJob } from '../../jobs/changes/control-job.js';
import type { OperationHandler } from '../types.js';

/** Calls of a session that may wait for their results. */
const MAX_PENDING = 64;
const PAGE = 20;

type Asking = Pick<FastifyRequest, 'records' | 'server'>;

export const putCall: OperationHandler<'putCall'> = async (request, reply) => {
  const { records, params, headers, server } = request;
  const job = await findSession(request, params.job_id);
  const { number } = params;
  const counters = await countersOf(request, job.id);
  if (number > counters.appended) {
    refuseBeyond(job, counters, number);
    await requireStorage(server.services.store, records.project, headers['content-length']);
  }
  const stored = await appendCall(request, {
    job,
    number,
    counters,
    body: request.body as unknown as Buffer,
  });
  await wake(request, job.id);
  return reply.code(stored.is_new ? 202 : 200).send(receiptOf(stored, counters));
};

export const getCall: OperationHandler<'getCall'> = async (request, reply) => {
  const { job_id, number } = request.params;
  const job = await findSession(request, job_id);
  requireCall(await countersOf(request, job.id), number);
  return sendJson(request, reply, callKey(job.id, number));
};

export const getCallResult: OperationHandler<'getCallResult'> = async (request, reply) => {
  const { job_id, number } = request.params;
  const { wait_seconds: seconds = 0 } = request.query;
  const job = await findSession(request, job_id);
  let counters = await countersOf(request, job.id);
  requireCall(counters, number);
  if (counters.answered < number && seconds > 0) {
    const gone = new AbortController();
    onClosed(reply, () => gone.abort());
    await request.records.waitCalls(job.id, ({ answered }) => answered >= number, {
      timeoutMs: seconds * 1000,
      signal: AbortSignal.any([gone.signal, request.server.services.closing]),
    });
    counters = await countersOf(request, job.id);
  }
  if (counters.answered < number) {
    const { state } = await findJob(request.records, job.id);
    if (isFinal(state))
      throw new ZerofleetError('job_final', `the job has ended (${state}), and call ${number} has no result`);
    return { number, state: 'pending' } satisfies CallAnswer;
  }
  const start = `{"number":${number},"state":"done","result":`;
  return sendJson(request, reply, callResultKey(job.id, number), { start, end: '}' });
};

export const listCalls: OperationHandler<'listCalls'> = async (request) => {
  const { objects } = request.server.services;
  const { after, limit = PAGE } = request.query;
  const job = await findSession(request, request.params.job_id);
  const { appended, answered } = await countersOf(request, job.id);
  const newest = Math.min(appended, Number(after ?? appended + 1) - 1);
  const length = Math.max(0, Math.min(limit, newest));
  const numbers = Array.from({ length }, (_, i) => newest - i);
  const summaryOf = async (number: number): Promise<CallSummary> => {
    const type = await typeOfCall(objects, job.id, number);
    const isDone = number <= answered;
    const result =
      isDone && (type === 'optim_step' || type === 'load_state')
        ? await readCallResult(objects, job.id, number)
        : null;
    return {
      number,
      type,
      state: isDone ? 'done' : 'pending',
      state_digest: result !== null && 'state_digest' in result ? result.state_digest : null,
    };
  };
  return {
    data: await Promise.all(numbers.map(summaryOf)),
    next_cursor: newest > length ? String(newest - length + 1) : null,
  };
};

/** @throws ZerofleetError `job_not_found`, `not_a_session` */
async function findSession({ records }: Asking, id: string): Promise<Job> {
  const job = await findJob(records, id);
  if (job.spec.train.session !== undefined) return job;
  throw new ZerofleetError('not_a_session', `job ${id} trains on data; a session has train.session`);
}

function countersOf({ records, server }: Asking, jobId: string): Promise<CallCounters> {
  return callCounters({ store: records, objects: server.services.objects }, jobId);
}

function requireCall({ appended }: CallCounters, number: number): void {
  if (number > appended)
    throw new ZerofleetError('call_not_found', `the session has ${appended} calls, and no call ${number}`);
}

/** Refuses a number that the session does not have yet. */
function refuseBeyond({ id, state }: Job, counters: CallCounters, number: number): void {
  const { appended, answered, is_finished } = counters;
  if (is_finished) throw new ZerofleetError('session_finished', `call ${appended} of ${id} is a finish`);
  if (isFinal(state)) throw new ZerofleetError('job_final', `the job has ended: ${state}`);
  if (number > appended + 1)
    throw new ZerofleetError('call_out_of_order', `the next call of ${id} is ${appended + 1}, not ${number}`);
  if (appended - answered >= MAX_PENDING)
    throw new ZerofleetError(
      'too_many_calls',
      `${appended - answered} calls of ${id} wait for their results; read the result of call ${answered + 1} first`,
    );
}

/** Resumes a session that was paused because no call came. */
async function wake(request: Asking, id: string): Promise<void> {
  const { state, reason } = await findJob(request.records, id);
  if (state !== 'paused' || reason !== 'idle') return;
  await resumeJob(request, id).catch((error: unknown) => {
    // Another call has resumed it.
    if (!(error instanceof ZerofleetError) || error.code !== 'invalid_state') throw error;
  });
}

function receiptOf({ type, number }: StoredText, { answered }: CallCounters): CallReceipt {
  return { number, type, state: number <= answered ? 'done' : 'pending' };
}

/** Sends a stored JSON text, which may have megabytes, without parsing it. */
async function sendJson(
  { server, method }: FastifyRequest,
  reply: FastifyReply,
  key: string,
  { start = '', end = '' } = {},
): Promise<FastifyReply> {
  const stored = method === 'HEAD' ? [] : await server.services.objects.stream(key);
  const text = async function* () {
    if (start !== '') yield Buffer.from(start);
    yield* stored;
    if (end !== '') yield Buffer.from(end);
  };
  return reply.type('application/json; charset=utf-8').send(Readable.from(text(), { objectMode: false }));
}
