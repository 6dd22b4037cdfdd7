/** Errors in the shape of the translated API: `{error: {message, type, param, code}}`. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../client/index.js';
import type { FieldError, Problem } from '../../contracts/index.js';
import { describeError } from '../http/describe-error.js';
import { toProblem } from '../http/problem.js';

/** A request that this API refuses itself. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    /** The parameter; null for the request as a whole. */
    readonly param: string | null,
    message: string,
  ) {
    super(message);
  }
}

export function notSupported(param: string, message: string): Refusal {
  return new Refusal(400, 'unsupported_parameter', param, message);
}

export function notFound(param: string, message: string): Refusal {
  return new Refusal(404, `${param}_not_found`, param, message);
}

/** Parameters whose values a field of a job document has. */
const PARAM_OF: readonly [pointer: string, param: string][] = [
  ['/data/dataset', 'training_file'],
  ['/train/evaluation', 'validation_file'],
  ['/train/epochs', 'n_epochs'],
  ['/train/steps', 'n_epochs'],
  ['/train/global_batch_size', 'batch_size'],
  ['/train/micro_batch_size', 'batch_size'],
  ['/train/optimizer/lr', 'learning_rate_multiplier'],
  ['/train/objective', 'method'],
  ['/train/seed', 'seed'],
  ['/labels', 'metadata'],
  ['/name', 'suffix'],
  ['/data', 'training_file'],
  ['/model', 'model'],
  ['/messages', 'messages'],
  ['/prompt', 'prompt'],
];

interface Described {
  status: number;
  body: { error: { message: string; code: string; param: string | null; type: string } };
}

/** Answers with an error. */
export function sendRefusal(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, body } = describeRefusal(error, request);
  if (status === 429 || status === 503) reply.header('retry-after', reply.getHeader('retry-after') ?? 2);
  return reply.code(status).send(body);
}

/** Describes any error. */
export function describeRefusal(error: unknown, request: Pick<FastifyRequest, 'id' | 'log'>): Described {
  if (error instanceof Refusal) {
    const { status, code, param, message } = error;
    return described(status, { message, code, param });
  }
  if (error instanceof ApiError && error.problem !== null) return describeProblem(error.problem);
  const problem = toProblem(describeError(error), request.id);
  if (problem.status >= 500) request.log.error({ err: error }, 'request failed');
  return describeProblem(problem);
}

function describeProblem({ status, code, detail, title, errors = [] }: Problem): Described {
  const [first] = errors;
  const fields = errors.map(({ pointer, message }) => `${pointer}: ${message}`).join('; ');
  const message = fields === '' ? (detail ?? title) : `${detail ?? title} (${fields})`;
  return described(status, { message, code, param: first === undefined ? null : paramOf(first) });
}

function paramOf({ pointer }: FieldError): string | null {
  return PARAM_OF.find(([start]) => pointer.startsWith(start))?.[1] ?? null;
}

function described(
  status: number,
  error: { message: string; code: string; param: string | null },
): Described {
  return { status, body: { error: { ...error, type: typeOf(status) } } };
}

function typeOf(status: number): string {
  if (status >= 500) return 'server_error';
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  return status === 429 ? 'rate_limit_error' : 'invalid_request_error';
}
