import createClient, { type Client } from 'openapi-fetch';
import type { paths } from '../contracts/generated/openapi.js';
import type { Problem } from '../contracts/types.js';
import { ApiError } from './errors.js';
import { defaultRetry, type RetryPolicy, retryingFetch } from './retry.js';

export interface ClientOptions {
  /** Where the API is, e.g. `http://127.0.0.1:8080`. */
  baseUrl: string;
  /** Sent as bearer token. */
  apiKey: string;
  retry?: Partial<RetryPolicy>;
  /** Instead of the global fetch. */
  fetch?: typeof fetch;
}

/** The operations of the contract, typed by it, with retries. */
export type Http = Client<paths>;

/** The ETag that the thing must still have. Only what people can change of it counts, and of a job its state. */
export interface Match {
  ifMatch?: string;
}

export function matchHeader({ ifMatch }: Match): { header?: { 'If-Match': string } } {
  return ifMatch === undefined ? {} : { header: { 'If-Match': ifMatch } };
}

/** What all requests are sent with. */
export function fetchOf(
  options: Pick<ClientOptions, 'fetch' | 'retry'>,
): (request: Request) => Promise<Response> {
  return retryingFetch(options.fetch ?? fetch, { ...defaultRetry, ...options.retry });
}

export function createHttp(options: ClientOptions): Http {
  const { baseUrl, apiKey } = options;
  const http = createClient<paths>({
    baseUrl: baseUrl.replace(/\/+$/, ''),
    headers: { authorization: `Bearer ${apiKey}` },
    fetch: fetchOf(options),
  });
  http.use({
    onRequest: ({ request }) => {
      if (takesKey(request)) request.headers.set('idempotency-key', crypto.randomUUID());
      return request;
    },
  });
  return http;
}

/**
 * Whether a request gets a key of its own, so that it may be sent again. Content that is streamed can't be.
 */
function takesKey({ method, headers }: Request): boolean {
  if (!['POST', 'PATCH', 'DELETE'].includes(method) || headers.has('idempotency-key')) return false;
  const type = headers.get('content-type');
  return type === null || type.startsWith('application/json');
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/**
 * The body of a successful answer.
 * @param request what was asked, for the message
 * @throws ApiError for any other answer
 */
export async function bodyOf<T>(request: string, answer: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer;
  if (response.ok) return data as T;
  throw new ApiError(response.status, isProblem(error) ? error : null, request);
}

function isProblem(body: unknown): body is Problem {
  return typeof body === 'object' && body !== null && 'code' in body && 'title' in body && 'status' in body;
}
