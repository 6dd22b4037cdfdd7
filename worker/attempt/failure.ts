import {
  ERROR_CATALOGUE,
  type ErrorCode,
  isErrorCode,
  type JobFailure,
  ZerofleetError,
} from '../../contracts/index.js';
import { fromRankError, toRankError } from '../common/errors.js';
import { isDeviceCode } from '../gpus/gpu-faults.js';
import type { RankEnd } from '../supervisor/rank.js';

/** What is known about an error of an attempt, before anybody decides what to do about it. */
export interface AttemptError extends JobFailure {
  code: ErrorCode;
  /** The same spec will fail the same way: another try is of no use. */
  deterministic: boolean;
  /** The worker that could not be reached, or was lost; absent where it is not about one. */
  worker_id?: string;
}

/** A worker that is lost says nothing about what it did. After so many, without any progress, each is an error of that. */
export const MAX_LOST_WORKERS = 10;

/** Codes of a checkpoint that can't be used, where the one before it may be, and of a model. */
const BAD_CHECKPOINT: ReadonlySet<string> = new Set([
  'manifest_invalid',
  'shard_corrupt',
  'checkpoint_incomplete',
  'object_not_found',
  'invalid_range',
  'model_corrupt',
]);

export function isBadCheckpoint(code: string): boolean {
  return BAD_CHECKPOINT.has(code);
}

/** Describes anything that was thrown while an attempt was prepared, loaded, saved or exported. */
export function describeError(
  error: unknown,
  rank: number | null = null,
  step: number | null = null,
): AttemptError {
  const { code, message } = toRankError(error);
  // What carries no code of ours is a fault of the program or of the machine; it may be gone at the next try.
  const known = isErrorCode(code) ? code : 'internal_error';
  const worker_id = error instanceof ZerofleetError ? error.details.worker_id : undefined;
  return { ...build(known, message, rank, step), ...(typeof worker_id === 'string' && { worker_id }) };
}

/** Describes the end of a rank that nobody asked for. @param host the machine on which it ran */
export function describeRankEnd(rank: number, host: string, end: RankEnd): AttemptError {
  const { code, what } = explain(end);
  const own_words = end.kind === 'failed' && !isDeviceCode(code);
  const message = own_words ? what : `rank ${rank} on ${host} ${what}${lastWords(end.output)}`;
  // Every rank comes to these; the one that was the first to say so has no part in it.
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

function explain(end: RankEnd): { code: ErrorCode; what: string } {
  switch (end.kind) {
    case 'failed': {
      const { code, message } = fromRankError(end.error);
      return { code, what: isDeviceCode(code) ? `failed: ${message}` : message };
    }
    case 'exited':
      return { code: 'rank_lost', what: `exited with code ${end.code}` };
    case 'signalled':
      return { code: 'rank_lost', what: `was ended by ${end.signal}` };
    case 'out_of_memory':
      return {
        code: 'oom_killed',
        what: `was ended by ${end.signal} because memory ran out (${end.evidence})`,
      };
    case 'silent':
      return { code: 'rank_unresponsive', what: `said nothing for ${end.silent_ms} ms and was killed` };
    case 'stuck':
      return {
        code: 'rank_unresponsive',
        what: `answered, but ${end.waiting} other ranks waited for it in vain; it was killed`,
      };
    case 'not_started':
      return { code: 'rank_lost', what: `could not be started: ${end.message}` };
    case 'node_lost':
      return { code: 'node_lost', what: `was lost with its worker: ${end.message}` };
    case 'killed':
      return { code: 'internal_error', what: 'was killed by its agent' };
  }
}

/** What an event tells of an error: all that is known of who and what it was. */
export function blameOf(error: AttemptError): Record<string, unknown> {
  const { deterministic: _, category: _category, retryable: _retryable, ...known } = error;
  return known;
}

function build(code: ErrorCode, message: string, rank: number | null, step: number | null): AttemptError {
  const { category, retryable } = ERROR_CATALOGUE[code];
  const deterministic =
    category === 'user' ||
    category === 'data' ||
    category === 'diverged' ||
    // A rank that asks for more than there is asks again; one that the kernel chose may have had hungry neighbours.
    (category === 'oom' && !retryable) ||
    // What a kernel of ours does wrong, it does wrong again.
    code === 'gpu_fault' ||
    code === 'native_error';
  return { category, code, message, rank, step, retryable, deterministic };
}

function lastWords(output: readonly string[]): string {
  return output.length === 0 ? '' : `: ${output.join('\n').slice(-500)}`;
}
