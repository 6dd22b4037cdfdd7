/** Minimal Fastify server for `npm run bench -- api`: one route with a fixed answer, on loopback. */
import Fastify from 'fastify';

process.once('message', async (answer: object) => {
  const app = Fastify({ logger: false });
  app.get('/', async () => answer);
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  process.send?.({ url });
});
process.on('disconnect', () => process.exit(0));
