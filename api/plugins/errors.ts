import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { ZerofleetError } from '../../contracts/index.js';
import { describeError } from '../http/describe-error.js';
import { CHALLENGE, PROBLEM_MEDIA_TYPE, RETRY_AFTER_SECONDS, toProblem } from '../http/problem.js';
import { RouteMethods } from '../http/route-methods.js';
import { leaveRestUnread } from '../http/upload-body.js';

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
  leaveRestUnread(reply);
  if (problem.status >= 500) request.log.error({ err: error, code: source.code }, 'request failed');
  else request.log.info({ code: source.code, detail: source.detail }, 'request refused');
  if (problem.status === 401) reply.header('www-authenticate', CHALLENGE);
  if (problem.retryable && !reply.hasHeader('retry-after')) reply.header('retry-after', RETRY_AFTER_SECONDS);
  return reply.code(problem.status).type(PROBLEM_MEDIA_TYPE).send(JSON.stringify(problem));
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0] ?? '';
}
