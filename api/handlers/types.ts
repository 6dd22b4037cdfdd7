import type { FastifyReply, FastifyRequest } from 'fastify';
import type { operations } from '../../contracts/generated/openapi.js';
import type { OperationId } from '../../contracts/index.js';

type Part<T, Name extends string> = T extends { [K in Name]?: infer P } ? Exclude<P, undefined> : unknown;
type JsonBody<T> = T extends { content: { 'application/json': infer B } } ? B : unknown;

/** Fastify's description of an operation's request, derived from the contract. */
export interface OperationRoute<Id extends OperationId> {
  Params: Part<operations[Id]['parameters'], 'path'>;
  Querystring: Part<operations[Id]['parameters'], 'query'>;
  Body: JsonBody<Part<operations[Id], 'requestBody'>>;
}

export type OperationRequest<Id extends OperationId> = FastifyRequest<OperationRoute<Id>>;

/** Answers one operation. The returned value is sent; an error becomes a problem document. */
export type OperationHandler<Id extends OperationId> = (
  request: OperationRequest<Id>,
  reply: FastifyReply,
) => Promise<unknown> | unknown;
