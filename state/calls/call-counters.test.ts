import { pathToFileURL } from 'node:url';
import t from 'tap';
import { REDIS_PREFIX } from '../../contracts/index.js';
import { callText } from '../../formats/calls/call-log.js';
import { callKey, callResultKey } from '../../formats/checkpoint/layout.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { openJobStore } from '../job-store.js';
import { createTestJob } from '../testing/jobs.js';
import { callCounters } from './call-counters.js';

const SAVE = Buffer.from(callText({ type: 'save_state' }));
const FINISH = Buffer.from(callText({ type: 'finish' }));
const RESULT = Buffer.from('{"checkpoint":"ckpt_1","step":0}');

t.test('counters of which Redis has lost some are made from the objects again', async (t) => {
  const server = await startTestRedis();
  const store = await openJobStore({ url: server.url });
  const redis = await connectRedis(server.url, 'commands');
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(async () => {
    await disconnectRedis(redis);
    await objects.close();
    await store.close();
    await server.stop();
  });
  const { id } = await createTestJob(store);
  t.same(await callCounters({ store, objects }, id), { appended: 0, answered: 0, is_finished: false });
  t.equal(await store.getCalls(id), null, 'a session without calls has none');

  await objects.put(callKey(id, 1), SAVE);
  await store.countCalls(id, { appended: 1, answered: 0, is_finished: false, bytes: SAVE.length });
  t.same(await store.getCalls(id), { appended: 1, answered: 0, is_finished: false });
  await objects.put(callResultKey(id, 1), RESULT);
  await objects.put(callKey(id, 2), FINISH);
  const complete = { appended: 2, answered: 1, is_finished: true };
  const bytes = SAVE.length + RESULT.length + FINISH.length;
  const key = `${REDIS_PREFIX}:job:${id}:calls`;
  // The counters of a request that began before the loss, of a worker, and of an older copy of Redis.
  for (const left of [{ appended: 2 }, { appended: 2, answered: 1 }, { is_finished: true }]) {
    await redis.del(key);
    await store.countCalls(id, { ...left, bytes: 7 });
    t.equal(await store.getCalls(id), null);
    t.same(await callCounters({ store, objects }, id), complete);
    t.same(await store.getCalls(id), complete);
    t.equal(Number(await redis.hget(key, 'bytes')), bytes, 'no byte is counted twice');
  }
  await store.countCalls(id, { ...complete, answered: 2, bytes: 5 });
  t.equal(Number(await redis.hget(key, 'bytes')), bytes + 5);
});
