/**
 * One request to a URL that a client has chosen. Its name is resolved once, all its addresses must be allowed, and the
 * connection goes to one of them, so DNS rebinding has no effect. Redirects are not followed. Time and the length of
 * the answer are bounded.
 */
import { Resolver } from 'node:dns/promises';
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type AddressPolicy, literalAddress } from './addresses.js';

/** Resolves the addresses of a name. */
export type Resolve = (hostname: string) => Promise<string[]>;

interface PostOptions {
  policy: AddressPolicy;
  resolve: Resolve;
  /** Timeout of the whole request. */
  timeoutMs: number;
}

export type PostFailure =
  | 'address_refused'
  | 'name_not_found'
  | 'connection_failed'
  | 'tls_failed'
  | 'timeout'
  | 'protocol_error';

/** Either an answer with any status, or a failure. */
type PostResult = { status: number; error: null } | { status: null; error: PostFailure };

/** Maximum length that is read from an answer and dropped; the rest is cut off. */
const MAX_ANSWER_BYTES = 64 * 1024;
const DNS_TIMEOUT_MS = 3000;
const DNS_TRIES = 2;

/** Queries the name servers; unlike getaddrinfo it occupies no thread while they do not answer. */
export const resolveByDns: Resolve = async (hostname) => {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  const found = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  return found.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
};

export async function post(
  url: string,
  message: { headers: Record<string, string>; body: string },
  options: PostOptions,
): Promise<PostResult> {
  const { status, error } = await exchange(url, { method: 'POST', ...message }, options);
  return status === null ? { status, error } : { status, error: null };
}

interface OutgoingRequest {
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body: string;
}

interface ExchangeOptions extends PostOptions {
  /** Maximum length of the body of an answer; a longer one is a `protocol_error`. Absent: the body is dropped. */
  answerBytes?: number;
  /** Ends the request; it has failed as after a timeout. */
  signal?: AbortSignal;
}

/** Either an answer with any status and its body, or a failure. */
type ExchangeResult =
  | { status: number; text: string; error: null }
  | { status: null; text: null; error: PostFailure };

/** Sends a request to an allowed address, and follows no redirect. Never rejects. */
export async function exchange(
  url: string,
  request: OutgoingRequest,
  { policy, resolve, timeoutMs, answerBytes, signal: given }: ExchangeOptions,
): Promise<ExchangeResult> {
  const failed = (error: PostFailure): ExchangeResult => ({ status: null, text: null, error });
  const target = new URL(url);
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = given ? AbortSignal.any([given, timeout]) : timeout;
  const literal = literalAddress(target.hostname);
  const addresses = literal === null ? await resolve(target.hostname) : [literal];
  const [address] = addresses;
  if (address === undefined) return failed('name_not_found');
  if (!addresses.every((each) => policy.allows(each, target.protocol))) return failed('address_refused');
  try {
    const answer = await send(target, address, { ...request, signal });
    const status = answer.statusCode ?? 0;
    if (answerBytes === undefined) discard(answer);
    const text = answerBytes === undefined ? '' : await readText(answer, answerBytes);
    return text === null ? failed('protocol_error') : { status, text, error: null };
  } catch (error) {
    return failed(failureOf(error, signal));
  }
}

function send(
  target: URL,
  address: string,
  { method, headers, body, signal }: OutgoingRequest & { signal: AbortSignal },
): Promise<IncomingMessage> {
  const secure = target.protocol === 'https:';
  const options: RequestOptions & { servername?: string } = {
    method,
    host: address,
    port: target.port || (secure ? 443 : 80),
    path: `${target.pathname}${target.search}`,
    headers: { ...headers, host: target.host, 'content-length': Buffer.byteLength(body) },
    // A new connection: a kept connection could outlive a change of the allowed ranges.
    agent: false,
    signal,
    // The certificate must match the name, not the address.
    ...(secure && literalAddress(target.hostname) === null && { servername: target.hostname }),
  };
  return new Promise((resolve, reject) => {
    const request = (secure ? httpsRequest : httpRequest)(options, resolve);
    request.on('error', reject);
    request.end(body);
  });
}

/** Returns null for a body that is too long. */
async function readText(answer: IncomingMessage, limit: number): Promise<string | null> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > limit) return null;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

/** Drops the body: only the status matters. Errors of the body are ignored. */
function discard(answer: IncomingMessage): void {
  let bytes = 0;
  answer.on('error', () => undefined);
  answer.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > MAX_ANSWER_BYTES) answer.destroy();
  });
}

function failureOf(error: unknown, signal: AbortSignal): PostFailure {
  if (signal.aborted) return 'timeout';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code.startsWith('HPE_')) return 'protocol_error';
  if (/^(ERR_TLS|ERR_SSL|EPROTO|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO_)/.test(code)) return 'tls_failed';
  return 'connection_failed';
}
