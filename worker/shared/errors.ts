import { ERROR_CATALOGUE, type ErrorCode, isErrorCode, ZerofleetError } from '../../contracts/index.js';
import type { RankError, RetryPolicy } from '../../contracts/rank-protocol.js';
import { retry } from '../../platform/process/retry.js';

/** Returns the error code of any error, or null. */
export function codeOf(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : null;
}

/** Converts an error to the code and message that are sent between processes. A `RankError` stays as it is. */
export function toRankError(error: unknown): RankError {
  const messageField = (error as { message?: unknown } | null)?.message;
  const message = typeof messageField === 'string' ? messageField : String(error);
  return { code: systemCode(error) ?? codeOf(error) ?? 'internal_error', message };
}

/** Converts a received `RankError` to an error. Codes outside the catalogue came from the native core. */
export function fromRankError(error: RankError): ZerofleetError {
  const code: ErrorCode = isErrorCode(error.code) ? error.code : 'native_error';
  const message = code === error.code ? error.message : `${error.code}: ${error.message}`;
  return new ZerofleetError(code, message, { details: { native_code: error.code } });
}

/**
 * Returns whether the same call may succeed later. The catalogue decides: an operator may restore even a missing bucket
 * while training continues.
 */
export function isRetryable(error: unknown): boolean {
  const code = systemCode(error) ?? codeOf(error);
  return isErrorCode(code) && ERROR_CATALOGUE[code].retryable;
}

/** Repeats a call while it fails with retryable errors. @param signal ends the waiting; the last error is thrown */
export function retryTransient<T>(
  operation: () => Promise<T>,
  policy: RetryPolicy,
  signal?: AbortSignal,
): Promise<T> {
  return retry(operation, policy, { retryable: isRetryable, ...(signal && { signal }) });
}

/** Codes of a damaged checkpoint, whose predecessor may be usable, and of a damaged model. */
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

/**
 * Returns the error of a base under adapters that could not be read, so that it is not taken for one of the job's own
 * checkpoint.
 */
export function baseError(error: unknown): unknown {
  const { code, message } = toRankError(error);
  if (!isBadCheckpoint(code)) return error;
  return new ZerofleetError('base_damaged', `the base of the adapters: ${message}`, { cause: error });
}

/** Maps Node's codes of a full disk to the catalogue's. */
function systemCode(error: unknown): ErrorCode | null {
  const code = codeOf(error);
  return code === 'ENOSPC' || code === 'EDQUOT' ? 'disk_full' : null;
}
