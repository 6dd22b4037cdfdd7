/** A session and its calls, for every form of the API. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isFinal, type Job, ZerofleetError } from '../../contracts/index.js';
import { takesCalls } from '../../job-document/index.js';
import { type CallCounters, callCounters } from '../../state/index.js';
import { findJob } from '../access/found.js';
import { requireStorage } from '../access/storage-quota.js';
import { appendCall, type CheckedCall, type StoredText } from '../calls/append-call.js';
import { onClosed } from '../http/long-request.js';
import { resumeJob } from './changes/control-job.js';

/** Calls of a session that may wait for their results. */
export const MAX_PENDING = 64;

type Asking = Pick<FastifyRequest, 'records' | 'server'>;

interface NumberedCall {
  job: Job;
  number: number;
  counters: CallCounters;
  call: CheckedCall;
}

/** Refuses a new call that the session or the project's storage cannot take. @throws ZerofleetError */
export async function requireRoom(
  { records, server }: Asking,
  { job, number, counters, call }: NumberedCall,
): Promise<void> {
  requireNext(job, counters, number);
  if (number > counters.appended)
    await requireStorage(server.services.store, records.project, String(call.content.length));
}

/** Stores a call and resumes a session that no call kept awake. @throws ZerofleetError */
export async function storeCall(
  request: Asking,
  { job, number, counters, call }: NumberedCall,
): Promise<StoredText> {
  const stored = await appendCall(request, call, { job_id: job.id, number, counters });
  await wake(request, job.id);
  return stored;
}

/**
 * Waits at most `seconds` for the result of a call. Returns whether it exists.
 * @throws ZerofleetError `job_final` if it can no longer come
 */
export async function waitAnswered(
  request: Asking,
  reply: FastifyReply,
  { job_id: id, number, seconds }: { job_id: string; number: number; seconds: number },
): Promise<boolean> {
  let counters = await countersOf(request, id);
  requireCall(counters, number);
  if (counters.answered < number && seconds > 0) {
    const gone = new AbortController();
    onClosed(reply, () => gone.abort());
    await request.records.waitCalls(id, ({ answered }) => answered >= number, {
      timeoutMs: seconds * 1000,
      signal: AbortSignal.any([gone.signal, request.server.services.closing]),
    });
    counters = await countersOf(request, id);
  }
  if (counters.answered >= number) return true;
  const { state } = await findJob(request.records, id);
  if (!isFinal(state)) return false;
  throw new ZerofleetError('job_final', `the job has ended (${state}), and call ${number} has no result`);
}

/** Returns a job whose steps come from calls. @throws ZerofleetError `job_not_found`, `not_a_session` */
export async function findSession({ records }: Pick<FastifyRequest, 'records'>, id: string): Promise<Job> {
  const job = await findJob(records, id);
  if (takesCalls(job.spec.train)) return job;
  throw new ZerofleetError('not_a_session', `job ${id} trains on data; a session has train.session`);
}

export function countersOf({ records, server }: Asking, jobId: string): Promise<CallCounters> {
  return callCounters({ store: records, objects: server.services.objects }, jobId);
}

/** @throws ZerofleetError `call_not_found` */
export function requireCall({ appended }: CallCounters, number: number): void {
  if (number > appended)
    throw new ZerofleetError('call_not_found', `the session has ${appended} calls, and no call ${number}`);
}

/** Refuses a new call that the session cannot take. @throws ZerofleetError */
export function requireNext({ id, state, spec }: Job, counters: CallCounters, number: number): void {
  if (spec.train.session === undefined)
    throw new ZerofleetError(
      'calls_read_only',
      `the objective of job ${id} writes its calls; to write them, create a session`,
    );
  const { appended, answered, is_finished } = counters;
  if (number <= appended) return;
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
  const { state, reason, state_version } = await findJob(request.records, id);
  if (state !== 'paused' || reason !== 'idle') return;
  try {
    await resumeJob(request, id, { if_versions: [state_version] });
  } catch (error) {
    // Another call has resumed it, or a user has paused it.
    if (!(error instanceof ZerofleetError) || error.code !== 'version_mismatch') throw error;
    await wake(request, id);
  }
}
