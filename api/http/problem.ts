import { ERROR_CATALOGUE, type ErrorCode, type FieldError, type Problem } from '../../contracts/index.js';

export const PROBLEM_MEDIA_TYPE = 'application/problem+json; charset=utf-8';

/** `Retry-After` of retryable errors, in seconds. */
export const RETRY_AFTER_SECONDS = 2;

/** `WWW-Authenticate` of requests without a valid key. */
export const CHALLENGE = 'Bearer realm="zerofleet"';

/** Client-visible parts of an error, and whether the log needs it in full. */
export interface ProblemSource {
  code: ErrorCode;
  detail: string;
  errors: readonly FieldError[];
}

/**
 * Problem document (RFC 9457) of an error. With a 5xx status, `detail` is the catalogue's title: the error's message
 * may contain addresses, paths or keys and goes to the log only.
 */
export function toProblem({ code, detail, errors }: ProblemSource, requestId: string): Problem {
  const { status, title, retryable } = ERROR_CATALOGUE[code];
  return {
    type: `urn:zerofleet:error:${code}`,
    title,
    status,
    detail: status >= 500 ? `${title}. The server's log has the details under ${requestId}.` : detail,
    code,
    request_id: requestId,
    retryable,
    errors: [...errors],
  };
}

/** One sentence that lists the bad fields. */
export function fieldSummary(errors: readonly FieldError[]): string {
  const locations = errors.map(({ pointer }) => pointer || 'the document').join(', ');
  return `${errors.length} ${errors.length === 1 ? 'field is' : 'fields are'} invalid: ${locations}`;
}
