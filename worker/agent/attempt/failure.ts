import {
  ERROR_CATALOGUE,
  type ErrorCode,
  isErrorCode,
  type JobFailure,
  ZerofleetError,
} from '../../../contracts/index.js';
import { fromRankError, toRankError } from '../../shared/errors.js';
import { isDeviceCode } from '../../shared/gpu-faults.js';
import type { RankEnd } from '../supervisor/rank.js';

/** Facts about an error of an attempt, before the retry decision. */
export interface AttemptError extends JobFailure {
  code: ErrorCode;
  /** True if the same spec fails the same way, so that a retry is useless. */
  deterministic: boolean;
  /** Id of the worker that was lost or unreachable; absent for other errors. */
  worker_id?: string;
}

/**
 * Number of workers that a job may lose in a row without progress before each further one counts as an error of the
 * job. The loss of one worker does not show its cause.
 */
export const MAX_LOST_WORKERS = 10;

/** Describes any error from preparing, loading, saving or exporting. */
export function describeError(
  error: unknown,
  rank: number | null = null,
  step: number | null = null,
): AttemptError {
  const { code, message } = toRankError(error);
  // An error without a code of the catalogue is a fault of the program or of the machine, and may not recur.
  const known = isErrorCode(code) ? code : 'internal_error';
  const described = build(known, message, rank, step);
  if (!(error instanceof ZerofleetError)) return described;
  const { details, fields } = error;
  const { worker_id } = details;
  return {
    ...described,
    ...(typeof worker_id === 'string' && { worker_id }),
    ...(fields.length > 0 && { errors: [...fields] }),
  };
}

/** Describes the unexpected end of a rank. @param host the machine on which it ran */
export function describeRankEnd(rank: number, host: string, end: RankEnd): AttemptError {
  const { code, reason } = explain(end);
  const isComplete = end.kind === 'failed' && !isDeviceCode(code);
  const message = isComplete ? reason : `rank ${rank} on ${host} ${reason}${outputTail(end.output)}`;
  // Every rank has these errors, so none of them is assigned to the rank that reported first.
  if (end.kind === 'failed' && ['user', 'diverged'].includes(ERROR_CATALOGUE[code].category)) {
    return build(code, message, null, end.step);
  }
  return {
    ...build(code, message, rank, end.step),
    host,
    exit_code: end.kind === 'exited' ? end.code : null,
    signal: 'signal' in end ? end.signal : null,
    output: end.output,
  };
}

function explain(end: RankEnd): { code: ErrorCode; reason: string } {
  switch (end.kind) {
    case 'failed': {
      const { code, message } = fromRankError(end.error);
      return { code, reason: isDeviceCode(code) ? `failed: ${message}` : message };
    }
    case 'exited':
      return { code: 'rank_lost', reason: `exited with code ${end.code}` };
    case 'signalled':
      return { code: 'rank_lost', reason: `was killed by ${end.signal}` };
    case 'out_of_memory':
      return {
        code: 'oom_killed',
        reason: `was killed by ${end.signal} because memory ran out (${end.evidence})`,
      };
    case 'silent':
      return { code: 'rank_unresponsive', reason: `sent nothing for ${end.silent_ms} ms and was killed` };
    case 'stuck':
      return {
        code: 'rank_unresponsive',
        reason: `answered, but ${end.waiting} other ranks waited for it without progress; it was killed`,
      };
    case 'not_started':
      return { code: 'rank_lost', reason: `could not be started: ${end.message}` };
    case 'node_lost':
      return { code: 'node_lost', reason: `was lost with its worker: ${end.message}` };
    case 'killed':
      return { code: 'internal_error', reason: 'was killed by its agent' };
  }
}

/** Returns the data of an error's event: all facts about the error. */
export function rootCauseOf(error: AttemptError): Record<string, unknown> {
  const { deterministic: _, category: _category, retryable: _retryable, ...known } = error;
  return known;
}

function build(code: ErrorCode, message: string, rank: number | null, step: number | null): AttemptError {
  const { category, retryable } = ERROR_CATALOGUE[code];
  const deterministic =
    category === 'user' ||
    category === 'data' ||
    category === 'diverged' ||
    // An allocation that is too large fails again. The kernel may have killed a rank for the memory of other processes.
    (category === 'oom' && !retryable) ||
    // Faults of the native core recur, and so does a computation that differs.
    code === 'gpu_fault' ||
    code === 'native_error' ||
    code === 'replay_differs';
  return { category, code, message, rank, step, retryable, deterministic };
}

function outputTail(output: readonly string[]): string {
  return output.length === 0 ? '' : `: ${output.join('\n').slice(-500)}`;
}
