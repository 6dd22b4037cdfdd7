import { once } from 'node:events';
import { type ConnectionOptions, Worker } from 'bullmq';
import t from 'tap';
import { type QueuePayload, queueName, REDIS_PREFIX } from '../../contracts/index.js';
import { redisOptions } from '../../platform/redis/connect.js';
import { Fleet } from '../testing/fleet.js';

t.test('a job whose queue entry ended as failed is found and run', async (t) => {
  const f = await Fleet.start();
  t.teardown(() => f.close());
  // What an agent's queue does when Redis refuses a command at the wrong moment.
  const failing = new Worker<QueuePayload>(
    queueName('default'),
    () => Promise.reject(new Error('LOADING Redis is loading the dataset in memory')),
    { connection: redisOptions(f.redis.url, 'queue') as ConnectionOptions, prefix: REDIS_PREFIX },
  );
  const failed = once(failing, 'failed');
  const id = await f.submit({ steps: 5, ranks: 1 });
  await failed;
  await failing.close();
  t.match(await f.store.getJob(id), { state: 'queued', attempt: 1 });

  await f.agent(4, { abandoned_interval_ms: 100 });
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.attempt, 2);
});
