import type { Problem } from '../../contracts/types.js';

/** A non-2xx answer of the API. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(
    /** HTTP status. */
    readonly status: number,
    /** The body; null when it is not a problem document, e.g. of a proxy. */
    readonly problem: Problem | null,
    request: string,
    /** Seconds after which the server accepts the request again (`Retry-After`); null when it did not say. */
    readonly retryAfterS: number | null = null,
  ) {
    super(`${request}: ${status}${problem ? ` ${problem.code}: ${problem.detail ?? problem.title}` : ''}`);
  }

  /** Code of the catalogue (docs/errors.md), e.g. `job_not_found`. */
  get code(): string | null {
    return this.problem?.code ?? null;
  }
}

/** No answer after all attempts: the server is unreachable or the connection broke. `cause` is the error of fetch. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';

  constructor(request: string, cause: unknown) {
    super(`${request}: no answer (${reasonOf(cause)})`, { cause });
  }
}

/** Reason of a failed connection, which fetch hides in the cause of its error. */
function reasonOf(error: unknown): string {
  for (let inner: unknown = error; inner instanceof Error; inner = inner.cause) {
    if ('code' in inner && typeof inner.code === 'string') return inner.code;
    if (!(inner.cause instanceof Error)) return inner.message;
  }
  return String(error);
}
