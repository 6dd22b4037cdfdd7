import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { REDIS_PREFIX } from '../../../../contracts/index.js';
import { callResultKey } from '../../../../formats/checkpoint/layout.js';
import { openObjectStore } from '../../../../platform/object-store/index.js';
import { connectRedis, disconnectRedis } from '../../../../platform/redis/connect.js';
import { startTestRedis } from '../../../../platform/testing/redis.js';
import { until } from '../../../../platform/testing/waiting.js';
import { openJobStore } from '../../../../state/index.js';
import { createTestJob } from '../../../../state/testing/jobs.js';
import { claimForTest } from '../../../testing/attempt-context.js';
import { JobCalls } from './job-calls.js';

/** Claims a job twice: only the second claim holds its lease. */
async function claims(t: Test) {
  const redis = await startTestRedis();
  const store = await openJobStore({ url: redis.url });
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  const { id } = await createTestJob(store);
  const lost = await claimForTest({ store, objects, job_id: id });
  const lostCalls = await JobCalls.open(lost.ctx);
  const held = await claimForTest({ store, objects, job_id: id });
  const calls = await JobCalls.open(held.ctx);
  t.teardown(async () => {
    await Promise.all([lostCalls.close(), calls.close()]);
    await Promise.all([lost.close(), held.close()]);
    await objects.close();
    await store.close();
    await redis.stop();
  });
  return { id, store, objects, redis, lostCalls, calls };
}

t.test('an agent that lost the lease stores no result', async (t) => {
  const { id, objects, lostCalls, calls } = await claims(t);
  const failed = Buffer.from('{"error":{"code":"checkpoint_save_failed","message":"stale_epoch"}}');
  await t.rejects(lostCalls.answer(1, failed, null), { code: 'stale_epoch' });
  t.equal(await objects.head(callResultKey(id, 1)), null);
  await calls.answer(1, Buffer.from('{"loss":1}'), null);
  t.equal(calls.answered, 1);
});

t.test('counters that fell with an older copy of Redis rise again', async (t) => {
  const { id, store, calls, redis } = await claims(t);
  const call = { is_finished: false, bytes: 10 };
  await store.countCalls(id, { ...call, appended: 2, answered: 0 });
  await until(async () => calls.appended === 2);
  await calls.answer(1, Buffer.from('{"loss":1}'), null);
  const client = await connectRedis(redis.url, 'commands');
  const key = `${REDIS_PREFIX}:job:${id}:calls`;
  await client.hset(key, { appended: '1', answered: '0' });
  await until(async () => (await store.getCalls(id))?.answered === 1);
  t.strictSame(await store.getCalls(id), { appended: 2, answered: 1, is_finished: false });
  await disconnectRedis(client);
});
