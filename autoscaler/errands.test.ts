import { type ConnectionOptions, Queue } from 'bullmq';
import t from 'tap';
import { exportQueueName, REDIS_PREFIX, sampleQueueName } from '../contracts/index.js';
import { createLogger } from '../platform/logging/logging.js';
import { redisOptions } from '../platform/redis/connect.js';
import { startTestRedis } from '../platform/testing/redis.js';
import { Errands } from './errands.js';

t.test('samples and exports that some agent has to come for', async (t) => {
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  const errands = new Errands(redis.url, createLogger({ level: 'silent', name: 'test' }));
  t.teardown(() => errands.close());
  const open = (name: string) => {
    const connection = redisOptions(redis.url, 'queue') as ConnectionOptions;
    const queue = new Queue(name, { connection, prefix: REDIS_PREFIX });
    t.teardown(() => queue.close());
    return queue;
  };
  t.equal(await errands.count('gpu'), 0);
  await open(sampleQueueName('gpu')).add('sample', {});
  const exports = open(exportQueueName('gpu'));
  await exports.add('export', {});
  await open(exportQueueName('other')).add('export', {});
  t.equal(await errands.count('gpu'), 2);
  t.equal(await errands.count('other'), 1);
  await exports.obliterate({ force: true });
  t.equal(await errands.count('gpu'), 1);
});
