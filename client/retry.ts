import { ConnectionError } from './errors.js';
import { pause } from './pause.js';

/** Number and backoff of attempts. */
export interface RetryPolicy {
  /** Attempts in total, at least 1. */
  tries: number;
  /** Pause after the first attempt in milliseconds; doubles with each attempt. */
  first_ms: number;
  /** Maximum pause, unless `Retry-After` is longer. */
  max_ms: number;
}

export const defaultRetry: RetryPolicy = { tries: 5, first_ms: 200, max_ms: 5_000 };

/** Statuses of a server or proxy that are retried. */
const RETRIED_STATUSES = new Set([429, 502, 503, 504]);

/**
 * A fetch that retries a request without an answer or with a retryable one. Only idempotent requests are retried: GET, HEAD, PUT
 * and DELETE, and others with an `Idempotency-Key`. Pauses are random between half and all of their length, to spread clients.
 * @throws ConnectionError when no attempt got an answer
 */
export function retryingFetch(
  send: typeof fetch,
  policy: RetryPolicy,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const { signal } = request;
    const tries = mayRepeat(request) ? policy.tries : 1;
    for (let attempt = 1; ; attempt += 1) {
      const last = attempt === tries;
      let pause_ms = pauseAfter(attempt, policy);
      try {
        const response = await send(last ? request : request.clone());
        if (last || !isRetryable(response)) return response;
        await response.body?.cancel();
        pause_ms = Math.max(pause_ms, 1000 * (retryAfter(response.headers) ?? 0));
      } catch (error) {
        signal.throwIfAborted();
        if (last) throw new ConnectionError(`${request.method} ${new URL(request.url).pathname}`, error);
      }
      await pause(pause_ms, signal);
    }
  };
}

/** A temporary conflict, such as a request still in progress, has `Retry-After`. */
const isRetryable = ({ status, headers }: Response) =>
  RETRIED_STATUSES.has(status) || (status === 409 && headers.has('retry-after'));

function mayRepeat({ method, headers }: Request): boolean {
  return ['GET', 'HEAD', 'PUT', 'DELETE'].includes(method) || headers.has('idempotency-key');
}

function pauseAfter(attempt: number, { first_ms, max_ms }: RetryPolicy): number {
  return Math.min(max_ms, first_ms * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
}

/** `Retry-After` in seconds, the only form that the API sends; null for none. */
export function retryAfter(headers: Headers): number | null {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : null;
}
