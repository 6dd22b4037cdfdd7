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
 * A fetch that retries a request without an answer or with a retryable one. Only idempotent requests are retried: GET,
 * HEAD, PUT and DELETE, and others with an `Idempotency-Key`. Of the others, those with a JSON body are retried when
 * the server asks for it (`Retry-After`): it has done nothing then. Pauses are random between half and all of their
 * length, to spread clients.
 * @throws ConnectionError when no attempt got an answer
 */
export function retryingFetch(
  send: typeof fetch,
  policy: RetryPolicy,
): (request: Request) => Promise<Response> {
  return (request) => sendRepeatedly(send, policy, request);
}

async function sendRepeatedly(send: typeof fetch, policy: RetryPolicy, request: Request): Promise<Response> {
  const { signal } = request;
  const isSafe = mayRepeat(request);
  const tries = isSafe || hasJson(request) ? policy.tries : 1;
  if (!isSafe) await closedConnectionsSeen(signal);
  for (let attempt = 1; ; attempt += 1) {
    const last = attempt === tries;
    let pauseMs = pauseAfter(attempt, policy);
    try {
      const response = await send(last ? request : request.clone());
      if (last || !isRetryable(response, isSafe)) return response;
      await response.body?.cancel();
      pauseMs = Math.max(pauseMs, 1000 * (retryAfter(response.headers) ?? 0));
    } catch (error) {
      signal.throwIfAborted();
      if (last || !isSafe) throw noAnswer(request, error);
    }
    await pause(pauseMs, signal);
  }
}

/**
 * Lets the program notice the connections that the server closed while the program was busy: it reads its connections
 * between two timers. A request on a closed connection gets no answer, and only an idempotent one could be retried.
 */
async function closedConnectionsSeen(signal: AbortSignal): Promise<void> {
  await pause(0, signal);
  await pause(0, signal);
}

function noAnswer({ method, url }: Request, cause: unknown): ConnectionError {
  return new ConnectionError(`${method} ${new URL(url).pathname}`, cause);
}

/**
 * A temporary conflict, such as a request still in progress, has `Retry-After`. A proxy's status without it does not
 * say what was done.
 */
function isRetryable({ status, headers }: Response, isSafe: boolean): boolean {
  const isAsked = headers.has('retry-after');
  return status === 409 ? isAsked : RETRIED_STATUSES.has(status) && (isSafe || isAsked);
}

function mayRepeat({ method, headers }: Request): boolean {
  return ['GET', 'HEAD', 'PUT', 'DELETE'].includes(method) || headers.has('idempotency-key');
}

/** Content of another type may be a stream, which can be sent once. */
export function hasJson({ headers }: Request): boolean {
  return headers.get('content-type')?.startsWith('application/json') ?? false;
}

function pauseAfter(attempt: number, { first_ms, max_ms }: RetryPolicy): number {
  return Math.min(max_ms, first_ms * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
}

/** `Retry-After` in seconds, the only form that the API sends; null for none. */
export function retryAfter(headers: Headers): number | null {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : null;
}
