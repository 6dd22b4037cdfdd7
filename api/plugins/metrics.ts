import fp from 'fastify-plugin';
import { onClosed } from '../http/long-request.js';

const STREAM = 'streamJob';

/** Counts every request that was answered, and the streams that are open. */
export default fp(
  async (app) => {
    const { metrics } = app.services;
    // Not earlier: what is refused before has opened no stream.
    app.addHook('preHandler', (request, reply, done) => {
      if (request.routeOptions.config.operation?.operationId === STREAM) {
        metrics.streamOpened();
        // A client that goes away in the middle is no response to Fastify.
        onClosed(reply, () => metrics.streamEnded());
        request.hasStream = true;
      }
      done();
    });
    app.addHook('onResponse', (request, reply, done) => {
      const operation = request.routeOptions.config.operation?.operationId ?? 'none';
      if (!request.hasStream) metrics.answered(operation, reply.statusCode, reply.elapsedTime / 1000);
      done();
    });
    app.decorateRequest('hasStream', false);
  },
  { name: 'metrics', dependencies: ['services'] },
);

declare module 'fastify' {
  interface FastifyRequest {
    /** Its answer may be a stream that lasts as long as the job. */
    hasStream: boolean;
  }
}
