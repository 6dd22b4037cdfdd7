/**
 * Requests to the Hugging Face Hub. The project's token goes to the configured endpoint only, never to a server that a
 * download redirects to. Every request has bounds on redirects, on silence and on the time that it waits for a limit
 * of the Hub.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ZerofleetError } from '../../contracts/index.js';
import type { RetryPolicy } from '../../contracts/rank-protocol.js';
import { backoffMs } from '../process/retry.js';
import { notTemporary, retryAfterMs, statusError, unavailable } from './errors.js';
import { within } from './pieces.js';

export interface HubClientOptions {
  /** URL of the Hub or of a mirror; may have a path. */
  endpoint: string;
  /** Longest silence of a server. */
  silenceMs?: number;
  retry?: RetryPolicy;
}

/** A request for a file or a document of a repository. */
export interface HubRequest {
  /** Path after the endpoint, encoded, and the query. */
  path: string;
  /** URI in messages. */
  name: string;
  token: string | null;
  /** First byte of the answer; the whole body by default. */
  from?: number;
  /** Commit that the answer must belong to. */
  commit?: string;
  signal?: AbortSignal | undefined;
}

const SILENCE_MS = 30_000;
const RETRY: RetryPolicy = { attempts: 5, first_delay_ms: 500, max_delay_ms: 10_000 };
/** Longest wait that a server may ask for; a longer one is left to the client. */
const MAX_WAIT_MS = 60_000;
const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** An answer with status 200, 206 or 416. */
export interface HubAnswer {
  status: number;
  headers: Headers;
  body: ReadableStream<Uint8Array> | null;
}

export class HubClient {
  readonly silenceMs: number;
  private readonly endpoint: URL;
  private readonly retry: RetryPolicy;

  constructor({ endpoint, silenceMs = SILENCE_MS, retry = RETRY }: HubClientOptions) {
    this.endpoint = new URL(endpoint);
    this.silenceMs = silenceMs;
    this.retry = retry;
  }

  /**
   * Sends a GET, and repeats it after temporary failures. The caller reads the body or cancels it.
   * @throws ZerofleetError `dataset_source_missing`, `dataset_source_denied`, `dataset_source_changed`,
   *   `hub_throttled`, `hub_unavailable`; the signal's reason
   */
  async get(request: HubRequest): Promise<HubAnswer> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.send(request);
      } catch (error) {
        request.signal?.throwIfAborted();
        const waitMs = retryAfterMs(error) ?? backoffMs(this.retry, attempt);
        if (notTemporary(error) || attempt >= this.retry.attempts || waitMs > MAX_WAIT_MS) throw error;
        await delay(waitMs, undefined, { signal: request.signal }).catch(() => undefined);
        request.signal?.throwIfAborted();
      }
    }
  }

  /** Follows the redirects of one attempt. */
  private async send(request: HubRequest): Promise<HubAnswer> {
    const { name, token, from = 0, commit, signal } = request;
    const range: Record<string, string> = from > 0 ? { range: `bytes=${from}-` } : {};
    let url = this.urlOf(request.path);
    let isHub = true;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
      const headers = isHub && token !== null ? { ...range, authorization: `Bearer ${token}` } : range;
      const answer = await this.fetch(url, headers, name, signal);
      if (isHub) requireCommit(answer, commit, name);
      const location = answer.headers.get('location');
      if (!REDIRECTS.has(answer.status) || location === null) {
        if (answer.ok || answer.status === 416) return answer;
        await discard(answer);
        throw statusError(answer, { name, isHub, hasToken: token !== null, endpoint: this.endpoint.href });
      }
      await discard(answer);
      url = this.nextUrl(url, location, name);
      isHub &&= url.origin === this.endpoint.origin;
    }
    throw unavailable(name, `it redirects more than ${MAX_REDIRECTS} times`);
  }

  private async fetch(
    url: URL,
    headers: Record<string, string>,
    name: string,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    const silent = new AbortController();
    const signals = [silent.signal, ...(signal ? [signal] : [])];
    try {
      // A range of an encoded body would be a range of other bytes.
      const sent = fetch(url, {
        redirect: 'manual',
        headers: { 'accept-encoding': 'identity', 'user-agent': 'zerofleet', ...headers },
        signal: AbortSignal.any(signals),
      });
      return await within(sent, this.silenceMs);
    } catch (error) {
      silent.abort();
      throw unavailable(name, reasonOf(error), error);
    }
  }

  private urlOf(path: string): URL {
    return new URL(`${this.endpoint.href.replace(/\/$/, '')}${path}`);
  }

  /** A server that is reached by TLS redirects to servers that are reached by TLS. */
  private nextUrl(from: URL, location: string, name: string): URL {
    const url = URL.canParse(location, from.href) ? new URL(location, from) : null;
    const allowed = this.endpoint.protocol === 'https:' ? ['https:'] : ['https:', 'http:'];
    if (url !== null && allowed.includes(url.protocol)) return url;
    throw unavailable(name, 'it redirects to an address that is not https');
  }
}

function requireCommit({ headers }: Response, commit: string | undefined, name: string): void {
  const found = headers.get('x-repo-commit');
  if (commit === undefined || found === null || found === commit) return;
  throw new ZerofleetError(
    'dataset_source_changed',
    `the Hub answered for ${name} with commit ${found.slice(0, 40)}`,
  );
}

async function discard({ body }: Response): Promise<void> {
  await body?.cancel().catch(() => undefined);
}

/** Reason of a network error. Addresses of downloads are not part of it, because they are signed. */
function reasonOf(error: unknown): string {
  const { code } = ((error as Error).cause ?? error) as { code?: unknown };
  return typeof code === 'string' ? code : 'the connection failed';
}
