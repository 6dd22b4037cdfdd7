/**
 * Baseline of handing jobs to BullMQ over HTTP, for `npm run bench -- api`: a Fastify route that parses a JSON body and
 * answers once the queue has an entry. It validates and stores nothing else.
 */
import { Queue } from 'bullmq';
import Fastify from 'fastify';
import { connectRedis } from '../../platform/redis/connect.js';

process.once('message', async ({ redis_url }: { redis_url: string }) => {
  const connection = await connectRedis(redis_url, 'commands');
  const queue = new Queue('bare-add', { connection: connection as never, prefix: '{bare}' });
  const app = Fastify({ logger: false });
  let added = 0;
  app.post('/', async ({ body }) => {
    const id = ++added;
    await queue.add('attempt', { job_id: `job_${id}`, attempt: 1 }, { jobId: `bare-${id}-1` });
    return body;
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  process.send?.({ url });
});
process.on('disconnect', () => process.exit(0));
