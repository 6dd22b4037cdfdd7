import { type ConnectionOptions, Queue } from 'bullmq';
import t from 'tap';
import { exportQueueName, REDIS_PREFIX } from '../contracts/index.js';
import { createLogger } from '../platform/logging/logging.js';
import { redisOptions } from '../platform/redis/connect.js';
import { startTestRedis } from '../platform/testing/redis.js';
import { openJobStore } from '../state/index.js';
import { takeSamples, testSample } from '../state/testing/samples.js';
import { BackgroundTasks } from './background-tasks.js';

t.test('counts queued samples and exports', async (t) => {
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  const store = await openJobStore({ url: redis.url });
  t.teardown(() => store.close());
  const backgroundTasks = new BackgroundTasks(
    store,
    redis.url,
    createLogger({ level: 'silent', name: 'test' }),
  );
  t.teardown(() => backgroundTasks.close());
  const open = (name: string) => {
    const connection = redisOptions(redis.url, 'queue') as ConnectionOptions;
    const queue = new Queue(name, { connection, prefix: REDIS_PREFIX });
    t.teardown(() => queue.close());
    return queue;
  };
  t.equal(await backgroundTasks.count('gpu'), 0);
  for (const id of ['taken', 'waits']) await store.requestSample(testSample(id, { pool: 'gpu' }));
  await takeSamples(store, { pool: 'gpu', limit: 1 });
  const exports = open(exportQueueName('gpu'));
  await exports.add('export', {});
  await open(exportQueueName('other')).add('export', {});
  t.equal(await backgroundTasks.count('gpu'), 3);
  t.equal(await backgroundTasks.count('other'), 1);
  await exports.obliterate({ force: true });
  t.equal(await backgroundTasks.count('gpu'), 2);
});
