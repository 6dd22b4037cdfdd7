/** Workers that are gone leave nothing behind in Redis or in connections. */
import { Worker as QueueWorker } from 'bullmq';
import { Redis } from 'ioredis';
import t, { type Test } from 'tap';
import { type QueuePayload, queueName, REDIS_PREFIX } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { until } from '../../platform/testing/waiting.js';
import { openJobStore } from '../../state/index.js';
import { testWorker } from '../../state/testing/workers.js';
import { startScheduler } from './start.js';

const WORKERS = 2_000;
const LONG_MS = 600_000;

/** Starts two schedulers on an empty Redis. */
async function open(t: Test) {
  const server = await startTestRedis();
  const redis = new Redis({ path: new URL(server.url).pathname, maxRetriesPerRequest: null });
  const store = await openJobStore({ url: server.url });
  const log = createLogger({ level: 'silent', name: 'test' });
  // These tests never reach the object store.
  const options = { redisUrl: server.url, store, objects: {} as ObjectStore, timing: { tick_ms: 10 }, log };
  const schedulers = [startScheduler(options), startScheduler(options)];
  t.teardown(async () => {
    for (const scheduler of schedulers) await scheduler.close();
    await store.close();
    redis.disconnect();
    await server.stop();
  });
  const deliver = (worker: string) =>
    redis.xadd(`${REDIS_PREFIX}:outbox`, '*', 'job_id', 'job_1', 'attempt', '1', 'worker_id', worker);
  const delivered = () => until(async () => (await redis.xlen(`${REDIS_PREFIX}:outbox`)) === 0);
  const keysOf = (name: string) => redis.keys(`${REDIS_PREFIX}:${name}*`);
  const connections = async () => String(await redis.client('LIST')).split('\n').length;
  return { redis, store, deliver, delivered, keysOf, connections, url: server.url };
}

t.test('nothing is left of 2,000 workers that withdrew or were lost', async (t) => {
  const { store, deliver, delivered, keysOf, connections } = await open(t);
  await deliver('w0');
  await delivered();
  const before = await connections();
  for (let at = 0; at < WORKERS; at += 100)
    await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        const id = `w${at + i}`;
        // Every third is lost without withdrawing.
        const pool = `pool-${i % 7}`;
        await store.announceWorker({ ...testWorker(id, 1), pool }, i % 3 === 0 ? 1 : LONG_MS);
        await deliver(id);
        if (i % 3 > 0) await store.withdrawWorker(id);
      }),
    );
  await delivered();
  await until(async () => (await keysOf('removed-workers')).length === 0);
  await until(async () => (await keysOf('worker')).length === 0);
  await until(async () => (await keysOf('pool')).length === 0);
  await until(async () => (await connections()) === before);
});

t.test('deliveries to a gone worker, and writes of a worker presumed gone, are removed', async (t) => {
  const { redis, store, deliver, delivered, keysOf } = await open(t);
  await deliver('late');
  await delivered();
  await until(async () => (await keysOf('worker-late')).length === 0);
  await redis.hset(`${REDIS_PREFIX}:${queueName('stopped')}:meta`, 'opts.maxLenEvents', '10000');
  await store.withdrawWorker('stopped');
  await until(async () => (await keysOf('worker-stopped')).length === 0);
  await until(async () => (await keysOf('removed-workers')).length === 0);
});

t.test('reading pools does not interfere with the removal of workers', async (t) => {
  const { store, keysOf, deliver, delivered } = await open(t);
  for (let n = 0; n < 200; n += 1) {
    await store.announceWorker({ ...testWorker(`short-${n}`, 1), pool: `once-${n}` }, 1);
    await deliver(`short-${n}`);
    await store.listPools();
  }
  await delivered();
  await until(async () => (await keysOf('removed-workers')).length + (await keysOf('pools')).length === 0);
  await until(async () => (await keysOf('worker')).length === 0);
});

t.test('a worker that was presumed gone and returns gets entries', async (t) => {
  const { store, deliver, keysOf, url } = await open(t);
  const taken: string[] = [];
  const worker = new QueueWorker<QueuePayload>(
    queueName('back'),
    async ({ data }) => void taken.push(data.job_id),
    {
      connection: { path: new URL(url).pathname, maxRetriesPerRequest: null },
      prefix: REDIS_PREFIX,
    },
  );
  t.teardown(() => worker.close());
  await worker.waitUntilReady();
  await store.announceWorker(testWorker('back', 1), 1);
  await until(
    async () => (await store.listPools()).length === 0 && (await keysOf('removed-workers')).length === 0,
  );
  await store.announceWorker(testWorker('back', 1), LONG_MS);
  await deliver('back');
  await until(() => taken.length > 0);
  t.same(taken, ['job_1']);
});

t.test('the queue of a worker keeps no finished entries', async (t) => {
  const { redis, store, delivered, keysOf, url } = await open(t);
  let done = 0;
  const worker = new QueueWorker<QueuePayload>(
    queueName('busy'),
    async () => {
      done += 1;
    },
    {
      connection: { path: new URL(url).pathname, maxRetriesPerRequest: null },
      prefix: REDIS_PREFIX,
      concurrency: 10,
    },
  );
  t.teardown(() => worker.close());
  await store.announceWorker(testWorker('busy', 1), LONG_MS);
  for (let n = 0; n < 1_000; n += 1)
    await redis.xadd(
      `${REDIS_PREFIX}:outbox`,
      '*',
      'job_id',
      `job_${n}`,
      'attempt',
      '1',
      'worker_id',
      'busy',
    );
  await delivered();
  await until(() => done === 1_000);
  const bytes = async () => {
    const sizes = await Promise.all((await keysOf('worker-busy')).map((key) => redis.memory('USAGE', key)));
    return sizes.reduce<number>((sum, size) => sum + Number(size), 0);
  };
  await until(async () => (await bytes()) < 16_384);
  t.pass('not 1,000 entries and their 4,000 events');
});
