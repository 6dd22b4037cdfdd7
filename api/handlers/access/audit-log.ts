import type { OperationHandler } from '../types.js';

export const listAuditLog: OperationHandler<'listAuditLog'> = (request) => {
  const { store } = request.server.services;
  return store.listAudit(request.records.project, request.query);
};
