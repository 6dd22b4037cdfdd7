/**
 * Tinker's API, translated. A model is a session (api/jobs/session-calls.ts). Each request is an operation of this
 * server's own API in another form. docs/tinker.md lists what is supported; all else is refused by name.
 */
import type { FastifyInstance } from 'fastify';
import { onClosed } from '../http/long-request.js';
import { describeRefusal, Refusal, sendRefusal } from '../openai/errors.js';
import { futureRoutes } from './futures.js';
import { modelRoutes } from './models.js';
import { samplingRoutes } from './sampling.js';
import { serviceRoutes } from './service.js';
import { trainingRoutes } from './training.js';

const PREFIX = '/tinker';
const TRANSLATED = { isTranslated: true };

export default async function tinker(app: FastifyInstance): Promise<void> {
  await app.register(
    async (scope) => {
      scope.addHook('onRoute', (route) => {
        route.config = { ...route.config, ...TRANSLATED };
      });
      scope.setErrorHandler((error, request, reply) => {
        // Clients repeat a request that is answered with 409.
        const { status, body } = describeRefusal(error, request);
        if (status !== 409) return sendRefusal(error, request, reply);
        const { code, param, message } = body.error;
        return sendRefusal(new Refusal(400, code, param, message), request, reply);
      });
      const notFound = { config: TRANSLATED };
      scope.setNotFoundHandler(notFound as object, (request) => {
        const [path] = request.url.split('?', 1);
        throw new Refusal(404, 'not_supported', null, `${request.method} ${path} is not supported`);
      });
      scope.addContentTypeParser(
        'application/x-protobuf',
        { parseAs: 'buffer', bodyLimit: app.services.limits.call_bytes },
        (_request, bytes, done) => done(null, bytes),
      );
      scope.addHook('onRequest', async (request, reply) => {
        if (request.operation?.isRaw)
          onClosed(reply, request.server.services.rawBodies.begin(request.records.project));
      });
      for (const routes of [serviceRoutes, modelRoutes, trainingRoutes, samplingRoutes, futureRoutes])
        await scope.register(routes, { prefix: '/api/v1' });
    },
    { prefix: PREFIX },
  );
}
