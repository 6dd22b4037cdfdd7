import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import type { AuditEntry, OperationId } from '../../contracts/index.js';
import { PROBLEM_MEDIA_TYPE } from '../http/problem.js';

/**
 * Writes every request that may change something to the audit log of the key's project, whether it was carried out or refused: before
 * its answer is sent; should Redis fail just then, the server's own log has the entry. An entry has names and ids only, nothing of a body or a header.
 *
 * A request without a key that is known belongs to no project; the server's own log has it.
 */
export default fp(
  async (app: FastifyInstance) => {
    const { store } = app.services;
    app.addHook('onSend', (request, reply, payload, done) => {
      const { apiKey } = request;
      const { operation } = request.routeOptions.config;
      if (apiKey === null || !operation?.isAudited) return done();
      const entry = entryOf(request, reply, { operationId: operation.operationId, payload });
      store.appendAudit(apiKey.project, { ...entry, key_id: apiKey.id, key_name: apiKey.name }).then(
        () => done(),
        (error: unknown) => {
          // What was done is done: the client has to hear of it.
          request.log.error({ err: error, audit: entry }, 'audit entry not written');
          done();
        },
      );
    });
  },
  { name: 'audit', dependencies: ['services', 'errors'] },
);

function entryOf(
  request: FastifyRequest,
  reply: FastifyReply,
  { operationId, payload }: { operationId: OperationId; payload: unknown },
): Omit<AuditEntry, 'id' | 'key_id' | 'key_name'> {
  const { statusCode: status } = reply;
  const code = status < 400 ? null : codeOf(reply, payload);
  return {
    at: new Date().toISOString(),
    operation: operationId,
    // A parameter that was refused may be anything.
    resource: code === 'invalid_parameter' ? null : resourceOf(request, reply),
    outcome: status < 400 ? 'succeeded' : status < 500 ? 'refused' : 'failed',
    status,
    code,
    request_id: request.id,
  };
}

/** The id of what was made, else the one in the path. */
function resourceOf(request: FastifyRequest, reply: FastifyReply): string | null {
  const location = reply.getHeader('location');
  if (typeof location === 'string') return location.slice(location.lastIndexOf('/') + 1);
  return Object.values(request.params ?? {}).map(String)[0] ?? null;
}

function codeOf(reply: FastifyReply, payload: unknown): string | null {
  if (typeof payload !== 'string' || reply.getHeader('content-type') !== PROBLEM_MEDIA_TYPE) return null;
  const { code }: { code?: unknown } = JSON.parse(payload);
  return typeof code === 'string' ? code : null;
}
