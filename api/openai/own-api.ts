/** This server's own API, as a request to the translated one sees it. */
import { Readable } from 'node:stream';
import type { ReadableStream as NodeStream } from 'node:stream/web';
import type { FastifyRequest, InjectOptions } from 'fastify';
import { Zerofleet } from '../../clients/typescript/index.js';
import { sendInside } from '../http/inside.js';

/** Never resolved: requests stay inside of this process. */
const INSIDE = 'http://inside.invalid';

/**
 * Returns the client of this server's own API with the key of a request. Each of its calls is a request to this server,
 * so keys, projects, quotas, limits and the audit log apply as to any other.
 */
export function ownApi(request: FastifyRequest): Zerofleet {
  return new Zerofleet({
    baseUrl: INSIDE,
    apiKey: '',
    retry: { tries: 1 },
    fetch: (input, init) => answer(request, new Request(input, init)),
  });
}

async function answer(request: FastifyRequest, own: Request): Promise<Response> {
  const { pathname, search } = new URL(own.url);
  const headers: Record<string, string> = Object.fromEntries(own.headers);
  delete headers.authorization;
  const { authorization, 'idempotency-key': key } = request.headers;
  if (authorization !== undefined) headers.authorization = authorization;
  // The client of this server's own API gives each change a new key.
  if (typeof key === 'string' && 'idempotency-key' in headers) headers['idempotency-key'] = key;
  const payload = await payloadOf(own);
  if (payload instanceof Readable) headers['transfer-encoding'] = 'chunked';
  const options = {
    method: own.method as NonNullable<InjectOptions['method']>,
    url: pathname + search,
    remoteAddress: request.ip,
    headers,
    ...(payload !== null && { payload }),
  };
  const reply = await sendInside(request.server, options, own.signal);
  const { statusCode: status } = reply;
  const hasBody = status !== 204 && status !== 304;
  const body = hasBody ? (Readable.toWeb(reply.stream()) as ReadableStream<Uint8Array>) : null;
  return new Response(body, { status, headers: headersOf(reply.headers) });
}

async function payloadOf(own: Request): Promise<string | Readable | null> {
  if (own.body === null) return null;
  const isJson = own.headers.get('content-type')?.startsWith('application/json');
  return isJson ? own.text() : Readable.fromWeb(own.body as NodeStream);
}

function headersOf(found: Readonly<Record<string, unknown>>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(found))
    if (value !== undefined) headers.set(name, String(value));
  return headers;
}
