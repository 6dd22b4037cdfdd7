import { ERROR_CATALOGUE, type ErrorCode, isErrorCode, ZerofleetError } from '../../contracts/index.js';
import type { RankError } from '../../contracts/rank-protocol.js';

/** The stable code that an error of any room carries, or null. */
export function codeOf(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : null;
}

/**
 * What crosses a process border of an error: its code and a message fit for people. One that came across stays as it is.
 */
export function toRankError(error: unknown): RankError {
  const told = (error as { message?: unknown } | null)?.message;
  const message = typeof told === 'string' ? told : String(error);
  return { code: systemCode(error) ?? codeOf(error) ?? 'internal_error', message };
}

/** The error again on the other side. Codes that the catalogue doesn't have came from the native core. */
export function fromRankError(error: RankError): ZerofleetError {
  const code: ErrorCode = isErrorCode(error.code) ? error.code : 'native_error';
  const message = code === error.code ? error.message : `${error.code}: ${error.message}`;
  return new ZerofleetError(code, message, { details: { native_code: error.code } });
}

/**
 * Whether the same call may succeed later. The catalogue decides: to a worker even a missing bucket is something that an operator
 * may bring back while training goes on.
 */
export function isRetryable(error: unknown): boolean {
  const code = systemCode(error) ?? codeOf(error);
  return isErrorCode(code) && ERROR_CATALOGUE[code].retryable;
}

/** Node's names of a full disk, in the words of the catalogue. */
function systemCode(error: unknown): ErrorCode | null {
  const code = codeOf(error);
  return code === 'ENOSPC' || code === 'EDQUOT' ? 'disk_full' : null;
}
