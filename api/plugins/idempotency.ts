import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { type OperationId, ZerofleetError } from '../../contracts/index.js';
import { documentHash } from '../../platform/canonical-json.js';
import type { KeyedRequest, RequestRepeats, StoredReply } from '../../state/index.js';
import { leaveRestUnread } from '../http/upload-body.js';

/** How long a key stays with a request whose server has died; a living one says again and again that it is at work. */
const LEASE_MS = 30_000;

/** Their key is kept in the same step as the job that they make. */
const OWN_KEYS: ReadonlySet<OperationId> = new Set(['createJob', 'forkJob']);

/** What they answer is shown once and stored nowhere. */
const SHOWING_SECRETS: ReadonlySet<OperationId> = new Set([
  'createApiKey',
  'rotateApiKey',
  'createWebhook',
  'rotateWebhookSecret',
]);

/** Headers of an answer that belong to what was done. */
const STORED_HEADERS = ['content-type', 'location', 'etag'];

interface Keyed {
  request: KeyedRequest;
  timer: NodeJS.Timeout;
}

/**
 * A request that changes something and comes with an `Idempotency-Key` is carried out once: its repetitions get the same answer, and
 * while it runs they are told to come again. What was refused or has failed is not remembered.
 */
export default fp(
  async (app: FastifyInstance) => {
    const { store } = app.services;
    app.decorateRequest('keyed', null);

    // The last thing before the handler: whoever may not ask, or asks for nonsense, takes no key.
    app.addHook('preHandler', (request, reply, done) => {
      const keyed = keyedRequest(request);
      if (keyed === null) return done();
      begin(store, keyed, { request, reply }).then(
        // Fastify goes on by itself when there is an answer already.
        (replayed) => replayed || done(),
        done,
      );
    });

    app.addHook('onSend', (request, reply, payload, done) => {
      const { keyed } = request;
      if (keyed === null) return done();
      request.keyed = null;
      clearInterval(keyed.timer);
      const stored = reply.statusCode < 400 ? storedReply(request, reply, payload) : null;
      store.endRequest(keyed.request, stored).then(
        () => done(),
        (error: unknown) => {
          // What was done is done: the client has to hear of it.
          request.log.error({ err: error }, 'answer to a request with an idempotency key not stored');
          done();
        },
      );
    });
  },
  { name: 'idempotency', dependencies: ['services', 'errors'] },
);

/** Whether the request was answered with what it was answered before; else it holds its key now. */
async function begin(
  store: RequestRepeats,
  keyed: KeyedRequest,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
): Promise<boolean> {
  try {
    const begun = await store.beginRequest(keyed, LEASE_MS);
    if (begun.state === 'done') {
      replay(reply, begun.reply);
      return true;
    }
    if (begun.state === 'running')
      throw new ZerofleetError(
        'idempotency_key_in_use',
        'a request with this Idempotency-Key is being carried out',
      );
  } catch (error) {
    if (request.body instanceof Readable) leaveRestUnread(reply);
    throw error;
  }
  request.keyed = { request: keyed, timer: keepAlive(store, keyed, request) };
  return false;
}

/** Null for a request that needs no such care. */
function keyedRequest(request: FastifyRequest): KeyedRequest | null {
  const { operation } = request.routeOptions.config;
  const key = request.headers['idempotency-key'];
  if (operation === undefined || typeof key !== 'string' || request.apiKey === null) return null;
  if (!operation.isKeyed || OWN_KEYS.has(operation.operationId)) return null;
  const { params, query, body, headers } = request;
  // An upload is told from another by what is said about it: nobody wants to read gigabytes to compare them.
  const content =
    body instanceof Readable ? [headers['content-type'], headers['content-length'] ?? null] : body;
  return {
    // All API keys of a project share their idempotency keys: a client may rotate its API key.
    scope: `${request.apiKey.project}:${operation.operationId}`,
    key,
    body_hash: documentHash({ params, query, content }),
    token: randomUUID(),
  };
}

function keepAlive(store: RequestRepeats, keyed: KeyedRequest, { log }: FastifyRequest): NodeJS.Timeout {
  const keep = () =>
    store
      .keepRequest(keyed, LEASE_MS)
      .catch((error: unknown) => log.warn({ err: error }, 'idempotency key not kept'));
  return setInterval(keep, LEASE_MS / 3);
}

function storedReply(request: FastifyRequest, reply: FastifyReply, payload: unknown): StoredReply {
  const named = STORED_HEADERS.map((name) => [name, reply.getHeader(name)] as const);
  const headers = named.filter((header): header is [string, string] => typeof header[1] === 'string');
  const { operation } = request.routeOptions.config;
  const has_secret = operation !== undefined && SHOWING_SECRETS.has(operation.operationId);
  const body = has_secret || typeof payload !== 'string' ? '' : payload;
  return { status: reply.statusCode, headers: Object.fromEntries(headers), body, has_secret };
}

function replay(reply: FastifyReply, { status, headers, body, has_secret }: StoredReply): FastifyReply {
  if (reply.request.body instanceof Readable) leaveRestUnread(reply);
  if (has_secret) {
    const made = headers.location === undefined ? '' : `, see ${headers.location}`;
    throw new ZerofleetError(
      'answer_shown_once',
      `a request with this Idempotency-Key was carried out${made}; its answer had a secret, which is shown once: rotate it if it was lost`,
    );
  }
  reply.code(status).headers(headers).header('idempotent-replayed', 'true');
  return reply.send(body === '' ? undefined : body);
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The idempotency key that it holds while it is carried out. */
    keyed: Keyed | null;
  }
}
