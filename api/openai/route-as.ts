import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { OperationId } from '../../contracts/index.js';
import { requireOperation } from '../http/authenticate.js';
import { operationOf } from '../operations.js';

/**
 * Options of a route that is an operation of this server's own API in another form. Requests need the operation's
 * scopes, are counted and audited as this operation, and are refused before their body is read.
 */
export function routeAs({ services }: FastifyInstance, operationId: OperationId) {
  return { config: { operation: operationOf(services.contract, operationId) } };
}

/**
 * Makes a request another operation than that of its route, with its parameters.
 * @throws ZerofleetError `outside_share`, `job_not_found`, `insufficient_scope`
 */
export function continueAs(request: FastifyRequest, operationId: OperationId, params: object): void {
  request.params = params;
  request.operation = requireOperation(request, operationId, params);
}
