import { found, notFound } from '../../access/found.js';
import { isOperator, projectAsked } from '../../access/operator.js';
import type { OperationHandler } from '../types.js';

export const listUsers: OperationHandler<'listUsers'> = async (request) => ({
  data: await request.server.services.store.listUsers(projectAsked(request.query.project, request)),
});

export const endSessionsOf: OperationHandler<'endSessionsOf'> = async (request, reply) => {
  const { principal_id: id } = request.params;
  const { store } = request.server.services;
  const { project } = found(await store.getPrincipal(id), PRINCIPAL, id);
  if (project !== request.records.project && !isOperator(request.principal)) throw notFound(PRINCIPAL, id);
  await store.endSessions(id);
  return reply.code(204).send();
};

const PRINCIPAL = 'key, user or share';
