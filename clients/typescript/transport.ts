import createClient, { type Client } from 'openapi-fetch';
import type { paths } from '../../contracts/generated/openapi.js';
import type { Problem } from '../../contracts/types.js';
import { ApiError } from './errors.js';
import { defaultRetry, hasJson, type RetryPolicy, retryAfter, retryingFetch } from './retry.js';

export interface ClientOptions {
  /** URL of the API, e.g. `http://127.0.0.1:8080`. */
  baseUrl: string;
  /** Sent as bearer token. Without one, in the console, the browser sends the session's cookie. */
  apiKey?: string;
  retry?: Partial<RetryPolicy>;
  /** Replaces the global fetch. */
  fetch?: typeof fetch;
}

/** Operations of the contract, typed by it, with retries. */
export type Http = Client<paths>;

/** Required ETag of the resource. Only client-changeable fields count, and for a job its state. */
export interface Match {
  ifMatch?: string;
}

export function matchHeader({ ifMatch }: Match): { header?: { 'If-Match': string } } {
  return ifMatch === undefined ? {} : { header: { 'If-Match': ifMatch } };
}

/** A fetch with the headers and retries of all requests. */
export function fetchOf(
  options: Pick<ClientOptions, 'fetch' | 'retry'>,
): (request: Request) => Promise<Response> {
  return retryingFetch(options.fetch ?? fetch, { ...defaultRetry, ...options.retry });
}

export function createHttp(options: ClientOptions): Http {
  const { baseUrl, apiKey } = options;
  const http = createClient<paths>({
    baseUrl: baseUrl.replace(/\/+$/, ''),
    // The header tells that a page of this server sends the cookie: pages of others cannot set it.
    headers: apiKey === undefined ? { 'x-zerofleet-console': '1' } : { authorization: `Bearer ${apiKey}` },
    fetch: fetchOf(options),
  });
  http.use({
    onRequest: ({ request, schemaPath }) => {
      if (takesKey(request, schemaPath)) request.headers.set('idempotency-key', crypto.randomUUID());
      return request;
    },
  });
  return http;
}

/** Operations without an idempotency key: a repetition would compute the answer again, beside the first one. */
const UNKEYED: ReadonlySet<string> = new Set<keyof paths>([
  '/v1/checkpoints/{checkpoint_id}/sample',
  '/v1/models/{model_id}/sample',
]);

/** True if the request gets an idempotency key, so that it may be retried. Streamed content cannot be retried. */
function takesKey(request: Request, path: string): boolean {
  const { method, headers } = request;
  if (!['POST', 'PATCH', 'DELETE'].includes(method) || headers.has('idempotency-key')) return false;
  return !UNKEYED.has(path) && (!headers.has('content-type') || hasJson(request));
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/**
 * Body of a successful answer.
 * @param request description for the error message
 * @throws ApiError for any other answer
 */
export async function bodyOf<T>(request: string, answer: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer;
  if (response.ok) return data as T;
  throw new ApiError(response.status, isProblem(error) ? error : null, request, retryAfter(response.headers));
}

function isProblem(body: unknown): body is Problem {
  return typeof body === 'object' && body !== null && 'code' in body && 'title' in body && 'status' in body;
}

/** Returns the address of a view of the console. A secret in its fragment is sent to no server. */
export function consoleAddress(baseUrl: string, path: readonly string[]): string {
  return `${baseUrl.replace(/\/+$/, '')}/#/${path.join('/')}`;
}
