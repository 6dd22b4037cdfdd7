import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import type { AuditEntry, OperationId } from '../../contracts/index.js';
import { isAnyId } from '../openai/ids.js';

/**
 * Writes every mutating request to the audit log of the principal's project, executed or refused, before its answer is
 * sent. If Redis fails at that moment, the server's own log has the entry. An entry has names and ids only, no content
 * of bodies or headers.
 *
 * A request of the translated API that changes something itself is in the log as the operation that its route names.
 *
 * A request without a known principal belongs to no project and is in the server's own log.
 */
export default fp(
  async (app: FastifyInstance) => {
    const { store } = app.services;
    app.addHook('onSend', (request, reply, payload, done) => {
      const { principal, operation } = request;
      if (principal === null || !operation?.isAudited) return done();
      const { id: principalId, name: principalName, project } = principal;
      const entry = entryOf(request, reply, { operationId: operation.operationId, payload });
      store.appendAudit(project, { ...entry, principal_id: principalId, principal_name: principalName }).then(
        () => done(),
        (error: unknown) => {
          // The change was made; the client must get its answer.
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
): Omit<AuditEntry, 'id' | 'principal_id' | 'principal_name'> {
  const { statusCode: status } = reply;
  const code = status < 400 ? null : codeOf(payload);
  return {
    at: new Date().toISOString(),
    session: request.session !== null,
    operation: operationId,
    // A refused parameter may contain anything.
    resource: code === 'invalid_parameter' ? null : resourceOf(request, reply),
    outcome: status < 400 ? 'succeeded' : status < 500 ? 'refused' : 'failed',
    status,
    code,
    request_id: request.id,
  };
}

/** The id of the created resource, else the id in the path. */
function resourceOf(request: FastifyRequest, reply: FastifyReply): string | null {
  const location = reply.getHeader('location');
  if (typeof location === 'string') return location.slice(location.lastIndexOf('/') + 1);
  const id = Object.values(request.params ?? {}).map(String)[0] ?? null;
  // The contract checks the parameters of the own API, but not those of the translated one.
  const { isTranslated = false } = request.routeOptions.config;
  return isTranslated && id !== null && !isAnyId(id) ? null : id;
}

/** The code of a problem document, or of an error of the translated API. */
function codeOf(payload: unknown): string | null {
  if (typeof payload !== 'string') return null;
  const { code, error }: { code?: unknown; error?: { code: unknown } } = JSON.parse(payload);
  const found = error?.code ?? code;
  return typeof found === 'string' ? found : null;
}
