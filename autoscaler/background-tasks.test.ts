import { type ConnectionOptions, Queue } from 'bullmq';
import t from 'tap';
import { exportQueueName, REDIS_PREFIX, sampleQueueName } from '../contracts/index.js';
import { createLogger } from '../platform/logging/logging.js';
import { redisOptions } from '../platform/redis/connect.js';
import { startTestRedis } from '../platform/testing/redis.js';
import { BackgroundTasks } from './background-tasks.js';

t.test('counts queued samples and exports', async (t) => {
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  const backgroundTasks = new BackgroundTasks(redis.url, createLogger({ level: 'silent', name: 'test' }));
  t.teardown(() => backgroundTasks.close());
  const open = (name: string) => {
    const connection = redisOptions(redis.url, 'queue') as ConnectionOptions;
    const queue = new Queue(name, { connection, prefix: REDIS_PREFIX });
    t.teardown(() => queue.close());
    return queue;
  };
  t.equal(await backgroundTasks.count('gpu'), 0);
  await open(sampleQueueName('gpu')).add('sample', {});
  const exports = open(exportQueueName('gpu'));
  await exports.add('export', {});
  await open(exportQueueName('other')).add('export', {});
  t.equal(await backgroundTasks.count('gpu'), 2);
  t.equal(await backgroundTasks.count('other'), 1);
  await exports.obliterate({ force: true });
  t.equal(await backgroundTasks.count('gpu'), 1);
});
