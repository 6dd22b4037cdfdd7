import fp from 'fastify-plugin';
import { onClosed } from '../http/long-request.js';

const STREAM = 'streamJob';

/** Counts answered requests and open streams. */
export default fp(
  async (app) => {
    const { metrics } = app.services;
    // Not earlier: a request refused before opens no stream.
    app.addHook('preHandler', (request, reply, done) => {
      if (request.operation?.operationId === STREAM) {
        metrics.streamOpened();
        // Fastify calls no response hook if the client disconnects during the answer.
        onClosed(reply, () => metrics.streamEnded());
        request.hasStream = true;
      }
      done();
    });
    app.addHook('onResponse', (request, reply, done) => {
      const operation = request.operation?.operationId ?? 'none';
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
