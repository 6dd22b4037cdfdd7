import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { ERROR_CATALOGUE, type ErrorCode, ZerofleetError } from '../../contracts/index.js';
import { toFieldErrors } from '../http/field-errors.js';
import { fieldSummary, PROBLEM_MEDIA_TYPE, type ProblemSource, toProblem } from '../http/problem.js';
import { RouteMethods } from '../http/route-methods.js';
import { isValidationError, type ValidationError } from '../http/validators.js';

/** `Retry-After` of retryable errors, in seconds. */
const RETRY_AFTER_SECONDS = 2;

/** Catalogue codes of Fastify's own errors. Others of status 4xx become `bad_request`. */
const CODE_OF_FASTIFY_ERROR: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_JSON_BODY: 'malformed_json',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'body_required',
};

/** JSON pointers of the parts that Fastify validates. */
const POINTER_OF_CONTEXT: Readonly<Record<string, string>> = {
  body: '',
  querystring: '/query',
  params: '/path',
  headers: '/header',
};

/** Converts every error to a reply. */
export default fp(
  async (app: FastifyInstance) => {
    const routes = new RouteMethods();
    app.addHook('onRoute', ({ url, method }) => routes.add(url, method));
    app.setErrorHandler(sendError);
    app.setNotFoundHandler((request, reply) => {
      const path = pathOf(request);
      const methods = routes.methodsOf(path);
      if (methods.length === 0)
        return sendError(new ZerofleetError('route_not_found', `there is no ${path}`), request, reply);
      const allowed = methods.join(', ');
      const message = `${path} has no ${request.method}; it has ${allowed}`;
      return sendError(
        new ZerofleetError('method_not_allowed', message),
        request,
        reply.header('allow', allowed),
      );
    });
  },
  { name: 'errors' },
);

/** Replies with the problem document of an error; also used by Fastify for errors before routing. */
export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const source = describeError(error);
  const problem = toProblem(source, request.id);
  reply.header('x-request-id', request.id);
  if (problem.status >= 500) request.log.error({ err: error, code: source.code }, 'request failed');
  else request.log.info({ code: source.code, detail: source.detail }, 'request refused');
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer realm="zerofleet"');
  if (problem.retryable && !reply.hasHeader('retry-after')) reply.header('retry-after', RETRY_AFTER_SECONDS);
  return reply.code(problem.status).type(PROBLEM_MEDIA_TYPE).send(JSON.stringify(problem));
}

/** Returns the catalogue's description of any error. */
export function describeError(error: unknown): ProblemSource {
  if (isValidationError(error)) return describeValidation(error);
  if (error instanceof ZerofleetError) {
    const { code, message, fields } = error;
    return { code, detail: message, errors: fields };
  }
  const { code, statusCode = 500, message } = error as Partial<FastifyError>;
  const known = CODE_OF_FASTIFY_ERROR[code ?? ''];
  if (known !== undefined)
    return { code: known, detail: message ?? ERROR_CATALOGUE[known].title, errors: [] };
  if (statusCode >= 400 && statusCode < 500)
    return { code: 'bad_request', detail: message ?? '', errors: [] };
  return { code: 'internal_error', detail: '', errors: [] };
}

function describeValidation(error: ValidationError): ProblemSource {
  const prefix = POINTER_OF_CONTEXT[error.validationContext] ?? '';
  const errors = toFieldErrors(error.validation, prefix);
  const code = prefix === '' ? 'validation_failed' : 'invalid_parameter';
  return { code, detail: fieldSummary(errors), errors };
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0] ?? '';
}
