import { ERROR_CATALOGUE, type ErrorCode, isErrorCode, type JobFailure } from '../../contracts/index.js';
import { codeOf, fromRankError, toRankError } from '../errors.js';
import type { RankEnd } from '../supervisor/rank-process.js';

/** What is known about an error of an attempt, before anybody decides what to do about it. */
export interface AttemptError extends JobFailure {
  code: ErrorCode;
  /** The same spec will fail the same way: another try is of no use. */
  deterministic: boolean;
}

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
  return build(known, message, rank, step);
}

/** Describes the end of a rank that nobody asked for. */
export function describeRankEnd(rank: number, end: RankEnd): AttemptError {
  switch (end.kind) {
    case 'failed': {
      const { code, message } = fromRankError(end.error);
      // Every rank comes to these; the one that was the first to say so has no part in it.
      const common = ['user', 'diverged'].includes(ERROR_CATALOGUE[code].category);
      return build(code, message, common ? null : rank, end.step);
    }
    case 'exited':
      return build(
        'rank_lost',
        `rank ${rank} exited with code ${end.code}${lastWords(end.output)}`,
        rank,
        null,
      );
    case 'signalled':
      return build(
        'rank_lost',
        `rank ${rank} was ended by ${end.signal}${lastWords(end.output)}`,
        rank,
        null,
      );
    case 'silent':
      return build(
        'rank_unresponsive',
        `rank ${rank} said nothing for ${end.silent_ms} ms and was killed`,
        rank,
        null,
      );
    case 'not_started':
      return build('rank_lost', `rank ${rank} could not be started: ${end.message}`, rank, null);
    case 'killed':
      return build('internal_error', `rank ${rank} was killed by its agent`, rank, null);
  }
}

/** Whether an error says that this worker must let go of the job. */
export function isLeaseLoss(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'stale_epoch' || code === 'job_final' || code === 'job_not_found';
}

function build(code: ErrorCode, message: string, rank: number | null, step: number | null): AttemptError {
  const { category, retryable } = ERROR_CATALOGUE[code];
  const deterministic =
    category === 'user' ||
    category === 'data' ||
    category === 'diverged' ||
    category === 'oom' ||
    code === 'native_error';
  return { category, code, message, rank, step, retryable, deterministic };
}

function lastWords(output: string): string {
  return output === '' ? '' : `: ${output.slice(-500)}`;
}
