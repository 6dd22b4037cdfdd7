import { ConnectionError } from './errors.js';
import { pause } from './pause.js';

/** How often and how long apart a request is sent again. */
export interface RetryPolicy {
  /** Tries in all, at least 1. */
  tries: number;
  /** Pause after the first try in milliseconds; it doubles from try to try. */
  first_ms: number;
  /** The longest pause, unless the server asks for a longer one by `Retry-After`. */
  max_ms: number;
}

export const defaultRetry: RetryPolicy = { tries: 5, first_ms: 200, max_ms: 5_000 };

/** Answers of a server or a proxy that say "not now". */
const LATER = new Set([429, 502, 503, 504]);

/**
 * A fetch that sends a request again when it got no answer, or the answer that it should come later. Only requests that
 * have one effect however often they arrive: GET, HEAD, PUT and DELETE, and others that carry an `Idempotency-Key`.
 * Pauses are random between half and all of their length, so that clients do not come back all at once.
 * @throws ConnectionError when no try got an answer
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
        if (last || !isLater(response)) return response;
        await response.body?.cancel();
        pause_ms = Math.max(pause_ms, retryAfterMs(response.headers));
      } catch (error) {
        signal.throwIfAborted();
        if (last) throw new ConnectionError(`${request.method} ${new URL(request.url).pathname}`, error);
      }
      await pause(pause_ms, signal);
    }
  };
}

/** A conflict that passes by itself, as of a request that the server still carries out, says when to come again. */
const isLater = ({ status, headers }: Response) =>
  LATER.has(status) || (status === 409 && headers.has('retry-after'));

function mayRepeat({ method, headers }: Request): boolean {
  return ['GET', 'HEAD', 'PUT', 'DELETE'].includes(method) || headers.has('idempotency-key');
}

function pauseAfter(attempt: number, { first_ms, max_ms }: RetryPolicy): number {
  return Math.min(max_ms, first_ms * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
}

/** `Retry-After` in seconds, the only form that the API sends; 0 for none. */
function retryAfterMs(headers: Headers): number {
  const seconds = Number(headers.get('retry-after') ?? 0);
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0;
}
