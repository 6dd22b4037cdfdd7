import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type CallAnswer,
  type CallReceipt,
  type CallSummary,
  ZerofleetError,
} from '../../../contracts/index.js';
import { readCallResult, typeOfCall } from '../../../formats/calls/call-log.js';
import { callKey, callResultKey, rewardsKey } from '../../../formats/checkpoint/layout.js';
import {
  reinforcementOf,
  rolloutAt,
  rolloutOfStep,
  rolloutPlan,
  sampleNumber,
} from '../../../job-document/index.js';
import type { CallCounters } from '../../../state/index.js';
import { findJob } from '../../access/found.js';
import { checkCall, type StoredText } from '../../calls/append-call.js';
import {
  countersOf,
  findSession,
  requireCall,
  requireNext,
  requireRoom,
  storeCall,
  waitAnswered,
} from '../../jobs/session-calls.js';
import type { OperationHandler } from '../types.js';

const PAGE = 20;

export const putCall: OperationHandler<'putCall'> = async (request, reply) => {
  const { job_id, number } = request.params;
  const job = await findSession(request, job_id);
  const counters = await countersOf(request, job.id);
  requireNext(job, counters, number);
  const call = await checkCall(request, job, { body: request.body as unknown as Buffer });
  await requireRoom(request, { job, number, counters, call });
  const stored = await storeCall(request, { job, number, counters, call });
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
  if (!(await waitAnswered(request, reply, { job_id: job.id, number, seconds })))
    return { number, state: 'pending' } satisfies CallAnswer;
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

export const getRollout: OperationHandler<'getRollout'> = async (request, reply) => {
  const { objects } = request.server.services;
  const { step } = request.query;
  const { id, spec } = await findJob(request.records, request.params.job_id);
  if (reinforcementOf(spec.train) === null)
    throw new ZerofleetError('no_rollouts', `the objective of job ${id} is not grpo`);
  const { answered } = await countersOf(request, id);
  const plan = rolloutPlan(spec.train);
  const known = rolloutAt(plan, answered);
  // The rewards of the newest samples may not be known yet.
  const asked = step === undefined ? [known, known - 1] : [rolloutOfStep(plan, step)];
  for (const rollout of asked) {
    const key = rewardsKey(id, sampleNumber(plan, rollout));
    if (rollout >= 0 && (await objects.head(key)) !== null) return sendJson(request, reply, key);
  }
  const what = step === undefined ? 'no step has' : `step ${step} does not have`;
  throw new ZerofleetError('rollout_not_found', `${what} samples with rewards yet`);
};

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
