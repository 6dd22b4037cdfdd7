import type { OperationHandler } from '../types.js';

export const getHubToken: OperationHandler<'getHubToken'> = ({ server, records }) =>
  server.services.store.getHubToken(records.project);

export const putHubToken: OperationHandler<'putHubToken'> = async ({ server, records, body }) => {
  const { store } = server.services;
  await store.putHubToken(records.project, body.token);
  return store.getHubToken(records.project);
};

export const deleteHubToken: OperationHandler<'deleteHubToken'> = async ({ server, records }, reply) => {
  await server.services.store.putHubToken(records.project, null);
  return reply.code(204).send();
};
