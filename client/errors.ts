import type { Problem } from '../contracts/types.js';

/** An answer of the API that is not 2xx. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(
    /** HTTP status. */
    readonly status: number,
    /** The body; null when it is no problem document, as of a proxy in between. */
    readonly problem: Problem | null,
    request: string,
  ) {
    super(`${request}: ${status}${problem ? ` ${problem.code}: ${problem.detail ?? problem.title}` : ''}`);
  }

  /** From the catalogue of codes (docs/errors.md), e.g. `job_not_found`. */
  get code(): string | null {
    return this.problem?.code ?? null;
  }
}

/** No answer came, after all tries: the server is not there, or the connection broke. `cause` is what fetch said. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';

  constructor(request: string, cause: unknown) {
    super(`${request}: no answer (${reasonOf(cause)})`, { cause });
  }
}

/** fetch hides the reason of a failed connection in the cause of its error. */
function reasonOf(error: unknown): string {
  for (let inner: unknown = error; inner instanceof Error; inner = inner.cause) {
    if ('code' in inner && typeof inner.code === 'string') return inner.code;
    if (!(inner.cause instanceof Error)) return inner.message;
  }
  return String(error);
}
