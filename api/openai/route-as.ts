import type { FastifyInstance } from 'fastify';
import type { OperationId } from '../../contracts/index.js';
import { operationOf } from '../operations.js';

/**
 * Options of a route that is an operation of this server's own API in another form. Requests need the operation's
 * scopes, are counted and audited as this operation, and are refused before their body is read.
 */
export function routeAs({ services }: FastifyInstance, operationId: OperationId) {
  return { config: { operation: operationOf(services.contract, operationId) } };
}
