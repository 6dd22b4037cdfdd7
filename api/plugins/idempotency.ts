import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { type OperationId, ZerofleetError } from '../../contracts/index.js';
import { documentHash } from '../../platform/canonical-json.js';
import type { KeyedRequest, RequestRepeats, StoredReply } from '../../state/index.js';
import { leaveRestUnread } from '../http/upload-body.js';

/** Lease of a key. A live server renews it; the key of a dead server is released when it expires. */
const LEASE_MS = 30_000;

/** Operations whose key is stored atomically with the job that they create. */
const OWN_KEYS: ReadonlySet<OperationId> = new Set(['createJob', 'forkJob']);

/** Operations whose answer is shown once and not stored. */
const SHOWING_SECRETS: ReadonlySet<OperationId> = new Set([
  'createApiKey',
  'rotateApiKey',
  'createShare',
  'createWebhook',
  'rotateWebhookSecret',
]);

/** Stored headers of an answer. */
const STORED_HEADERS = ['content-type', 'location', 'etag'];

interface Keyed {
  request: KeyedRequest;
  timer: NodeJS.Timeout;
}

/**
 * Executes a mutating request with an `Idempotency-Key` once: repetitions get the same answer, or must retry
 * while it runs. Refused and failed requests are not remembered.
 */
export default fp(
  async (app: FastifyInstance) => {
    const { store } = app.services;
    app.decorateRequest('keyed', null);

    // The last step before the handler: unauthorized and invalid requests acquire no key.
    app.addHook('preHandler', (request, reply, done) => {
      const keyed = keyedRequest(request);
      if (keyed === null) return done();
      begin(store, keyed, { request, reply }).then(
        // Fastify skips the handler if an answer was sent.
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
          // The change was made; the client must get its answer.
          request.log.error({ err: error }, 'answer to a request with an idempotency key not stored');
          done();
        },
      );
    });
  },
  { name: 'idempotency', dependencies: ['services', 'errors'] },
);

/** True if the request was answered with the stored answer; otherwise it now holds its key. */
async function begin(
  store: RequestRepeats,
  keyed: KeyedRequest,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
): Promise<boolean> {
  const begun = await store.beginRequest(keyed, LEASE_MS);
  if (begun.state === 'done') {
    replay(reply, begun.reply);
    return true;
  }
  if (begun.state === 'running')
    throw new ZerofleetError('idempotency_key_in_use', 'a request with this Idempotency-Key is in progress');
  request.keyed = { request: keyed, timer: keepAlive(store, keyed, request) };
  return false;
}

/** Null for a request without idempotency. */
function keyedRequest(request: FastifyRequest): KeyedRequest | null {
  const { operation } = request;
  const key = request.headers['idempotency-key'];
  if (operation === null || typeof key !== 'string' || request.principal === null) return null;
  if (!operation.isKeyed || OWN_KEYS.has(operation.operationId)) return null;
  const { params, query, body, headers, routeOptions } = request;
  // Uploads are distinguished by their parameters: comparing gigabytes of content would be too expensive.
  const content =
    body instanceof Readable ? [headers['content-type'], headers['content-length'] ?? null] : body;
  return {
    // All API keys of a project share their idempotency keys: a client may rotate its API key.
    scope: `${request.principal.project}:${operation.operationId}`,
    key,
    // An operation of the own API and its translated form have answers of different forms.
    body_hash: documentHash({ route: routeOptions.url, params, query, content }),
    token: randomUUID(),
  };
}

function keepAlive(store: RequestRepeats, keyed: KeyedRequest, { log }: FastifyRequest): NodeJS.Timeout {
  const keep = () =>
    store
      .keepRequest(keyed, LEASE_MS)
      .catch((error: unknown) => log.warn({ err: error }, 'lease of an idempotency key not renewed'));
  return setInterval(keep, LEASE_MS / 3);
}

function storedReply(request: FastifyRequest, reply: FastifyReply, payload: unknown): StoredReply {
  const named = STORED_HEADERS.map((name) => [name, reply.getHeader(name)] as const);
  const headers = named.filter((header): header is [string, string] => typeof header[1] === 'string');
  const { operation } = request;
  const hasSecret = operation !== null && SHOWING_SECRETS.has(operation.operationId);
  const body = hasSecret || typeof payload !== 'string' ? '' : payload;
  return { status: reply.statusCode, headers: Object.fromEntries(headers), body, has_secret: hasSecret };
}

function replay(reply: FastifyReply, { status, headers, body, has_secret }: StoredReply): FastifyReply {
  leaveRestUnread(reply);
  if (has_secret) {
    const made = headers.location === undefined ? '' : `, see ${headers.location}`;
    throw new ZerofleetError(
      'response_not_repeatable',
      `a request with this Idempotency-Key was executed${made}; its answer contained a secret, which is shown once: rotate the secret if it was lost`,
    );
  }
  reply.code(status).headers(headers).header('idempotent-replayed', 'true');
  return reply.send(body === '' ? undefined : body);
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The idempotency key that the request holds while it is executed. */
    keyed: Keyed | null;
  }
}
