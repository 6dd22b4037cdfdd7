/**
 * Tinker's API, translated. A model is a session (api/jobs/session-calls.ts). Each request is an operation of this
 * server's own API in another form. docs/tinker.md lists what is supported; all else is refused by name.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ZerofleetError } from '../../contracts/index.js';
import { hasBody, JSON_TYPE, mediaTypeOf, PROTOBUF_TYPE } from '../http/upload-body.js';
import { describeRefusal, Refusal, sendDescribed } from '../openai/errors.js';
import { PREFIXES, translateRoutes } from '../openai/translated.js';
import { futureRoutes } from './futures.js';
import { modelRoutes } from './models.js';
import { PARAMS } from './params.js';
import { samplingRoutes } from './sampling.js';
import { serviceRoutes } from './service.js';
import { trainingRoutes } from './training.js';

export default async function tinker(app: FastifyInstance): Promise<void> {
  await app.register(
    async (scope) => {
      translateRoutes(scope, { hasKeyHeader: true });
      scope.setErrorHandler((error, request, reply) => {
        const described = describeRefusal(error, request, PARAMS);
        // Clients repeat a request that is answered with 409.
        const status = described.status === 409 ? 400 : described.status;
        return sendDescribed({ ...described, status }, request, reply);
      });
      scope.addContentTypeParser(PROTOBUF_TYPE, { parseAs: 'buffer' }, (_request, bytes, done) =>
        done(null, bytes),
      );
      scope.addHook('onRequest', async (request) => requireMediaType(request));
      scope.addHook('preValidation', async ({ operation, body }) => {
        if (operation?.isRaw && body === undefined)
          throw new ZerofleetError('body_required', 'the request needs a body');
      });
      for (const routes of [serviceRoutes, modelRoutes, trainingRoutes, samplingRoutes, futureRoutes])
        await scope.register(routes, { prefix: '/api/v1' });
    },
    { prefix: PREFIXES.tinker },
  );
}

/** Refuses a body that the route does not read, before it is read. @throws Refusal */
function requireMediaType(request: FastifyRequest): void {
  const { mediaType = JSON_TYPE } = request.routeOptions.config;
  if (!hasBody(request) || mediaTypeOf(request) === mediaType) return;
  throw new Refusal(415, 'unsupported_media_type', null, `send the body as ${mediaType}`);
}
