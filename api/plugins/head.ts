import { Readable } from 'node:stream';
import fp from 'fastify-plugin';

/**
 * Fastify answers HEAD as GET, without the content. It would read a stream to its end for that: a file from the object store, or what
 * happens to a job for as long as it trains.
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
