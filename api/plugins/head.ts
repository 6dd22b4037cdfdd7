import { Readable } from 'node:stream';
import fp from 'fastify-plugin';

/**
 * Answers HEAD like GET without the content. Fastify would read a stream to its end for that: a file from the object
 * store, or a job's stream for as long as it trains.
 */
export default fp(
  async (app) => {
    app.addHook('onSend', (request, _reply, payload, done) => {
      if (request.method !== 'HEAD' || !(payload instanceof Readable)) return done(null, payload);
      payload.destroy();
      done(null, Readable.from([]));
    });
  },
  { name: 'head' },
);
