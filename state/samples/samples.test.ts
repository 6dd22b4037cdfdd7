import { Redis } from 'ioredis';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import type { SampleMessage } from '../../contracts/index.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { until } from '../../platform/testing/waiting.js';
import { openJobStore } from '../job-store.js';
import { createTestJob } from '../testing/jobs.js';
import { takeSamples, testSample } from '../testing/samples.js';
import { testWorker } from '../testing/workers.js';

const LONG_MS = 600_000;
const server = await startTestRedis();
t.teardown(() => server.stop());

async function open(t: Test) {
  const prefix = `{${ulid()}}`;
  const store = await openJobStore({ url: server.url, prefix });
  const redis = new Redis({ path: new URL(server.url).pathname });
  t.teardown(async () => {
    redis.disconnect();
    await store.close();
  });
  const request = async (count: number, project: string, model = 'm') => {
    for (let at = 0; at < count; at++)
      await store.requestSample(testSample(`${project}-${model}-${at}`, { project, model }));
  };
  /** Ends the holds of all workers. */
  const lose = async (pool = 'default') => {
    const key = `${prefix}:pool:${pool}:samples-taken`;
    for (const id of await redis.zrange(key, 0, '-1')) await redis.zadd(key, 1, id);
  };
  const keys = () => redis.keys(`${prefix}:*`);
  return { store, redis, request, lose, keys, key: (rest: string) => `${prefix}:${rest}` };
}

const ids = (taken: readonly { id: string }[]) => taken.map(({ id }) => id);
const TEXT: SampleMessage = {
  deltas: [{ index: 0, text_at: 0, text: 'x'.repeat(1 << 20), logprobs_at: 0, logprobs: [] }],
};
const END: SampleMessage = { end: { ok: false, error: { code: 'rank_lost', message: 'no' } } };

t.test('projects take turns, and models of a project do', async (t) => {
  const { store, request } = await open(t);
  // Requests of the same millisecond have the order of their names.
  await request(4, 'many', 'first');
  await request(2, 'many', 'second');
  await request(2, 'some');
  t.strictSame(ids(await takeSamples(store, { limit: 5 })), [
    'many-first-0',
    'some-m-0',
    'many-second-0',
    'some-m-1',
    'many-first-1',
  ]);
  const [more] = await takeSamples(store, {
    limit: 1,
    answered: [{ ...testSample('a', { project: 'many', model: 'first' }).payload }],
  });
  t.equal(more?.id, 'many-second-1', 'the model that runs nothing yet');
});

t.test('no project takes a whole worker, and no model all that its project may have', async (t) => {
  const { store, request } = await open(t);
  await request(200, 'a', 'one');
  const answered = (await takeSamples(store, { max_running: 64 })).map(({ payload }) => payload);
  t.equal(answered.length, 22, 'a third for one model');
  const next = async (project: string, model?: string) => {
    await request(100, project, model);
    const taken = await takeSamples(store, { max_running: 64, answered });
    answered.push(...taken.map(({ payload }) => payload));
    return ids(taken).filter((id) => id.startsWith(`${project}-${model ?? 'm'}-`)).length;
  };
  t.ok((await next('a', 'two')) > 0, 'another model of the project has room');
  t.ok((await next('b')) > 0, 'and so has another project');
  t.ok((await next('c')) > 0);
  t.ok(answered.length < 64);
});

t.test('no project takes the whole queue', async (t) => {
  const { store, request } = await open(t);
  await t.rejects(request(1_001, 'a'), {
    code: 'sample_queue_full',
    message: /334 requests for m, 334 of the/,
  });
  await t.rejects(request(1_001, 'a', 'other'), { code: 'sample_queue_full' });
  await request(100, 'b');
  t.ok((await store.countSamples('default')).waiting < 1_000);
});

t.test('a request is late until a worker has taken it, and never afterwards', async (t) => {
  const { store, lose } = await open(t);
  await store.requestSample(testSample('late', { wait_ms: -1 }));
  t.match(await takeSamples(store), [{ id: 'late', is_late: true }]);
  await store.requestSample(testSample('drained', { wait_ms: 1 }));
  await store.requestSample(testSample('lost'));
  t.match(await takeSamples(store, { worker: 'a' }), { length: 2 });
  const { id } = testSample('drained');
  const later = (await store.now()) + 2;
  await until(async () => (await store.now()) > later);
  await store.releaseSample(id, 'a');
  t.match(await takeSamples(store, { worker: 'b' }), [{ id, is_late: false }]);
  await lose();
  t.match(await takeSamples(store, { worker: 'c' }), { length: 3 });
});

t.test('requests of lost workers wait again, and end when they have lost too many', async (t) => {
  const { store, lose } = await open(t);
  await store.requestSample(testSample('id'));
  for (const worker of ['a', 'b', 'c', 'd']) {
    t.match(await takeSamples(store, { worker }), [{ id: 'id' }]);
    await lose();
  }
  t.strictSame(await takeSamples(store), []);
  t.match(await store.readMessages('caller', null), [
    { id: 'id', message: { end: { ok: false, error: { code: 'workers_lost' } } } },
  ]);
  t.strictSame(await store.findSamples(['id']), ['gone']);
});

t.test('a worker that lost a request neither answers nor returns it', async (t) => {
  const { store, lose } = await open(t);
  for (const id of ['lost', 'kept', 'abandoned']) await store.requestSample(testSample(id));
  await takeSamples(store, { worker: 'a', limit: 3 });
  await store.abandonSample('abandoned');
  t.strictSame(await store.renewSamples('default', 'a', ['kept', 'abandoned'], LONG_MS), ['abandoned']);
  await lose();
  await store.renewSamples('default', 'a', ['kept'], LONG_MS);
  t.match(await takeSamples(store, { worker: 'b' }), [{ id: 'lost' }]);
  t.strictSame(await store.renewSamples('default', 'a', ['lost', 'kept'], LONG_MS), ['lost']);
  t.equal(await store.sendSampleMessage('lost', 'a', END), 'gone');
  await store.releaseSample('lost', 'a');
  t.strictSame(await store.findSamples(['lost', 'kept', 'abandoned']), ['taken', 'taken', 'gone']);
});

t.test('messages are read once, in their order, and are bounded in bytes', async (t) => {
  const { store, redis, key } = await open(t);
  await store.requestSample(testSample('id'));
  await takeSamples(store);
  let woken = 0;
  const unwatch = await store.watchMessages('caller', () => (woken += 1));
  t.teardown(unwatch);
  let accepted = 0;
  while ((await store.sendSampleMessage('id', 'w', TEXT)) === 'sent') accepted += 1;
  t.equal(accepted, 8);
  await until(() => woken === accepted);
  const messages = key('sample-caller:caller:messages');
  t.ok(Number(await redis.memory('USAGE', messages, 'SAMPLES', 0)) < 12 * (1 << 20));
  const first = await store.readMessages('caller', null);
  t.equal(first.length, 1, 'a large one is read alone');
  t.equal(await store.sendSampleMessage('id', 'w', TEXT), 'full', 'until it reads on');
  t.strictSame(await store.readMessages('caller', null), first, 'a lost answer is read again');
  let position = '';
  let count = 0;
  for (let read = first; read.length > 0; read = await store.readMessages('caller', position)) {
    count += read.length;
    position = read.at(-1)?.position ?? '';
  }
  t.equal(count, accepted);
  t.equal(await redis.xlen(messages), 0);
  t.equal(await store.sendSampleMessage('id', 'w', END), 'sent');
  t.match(await store.readMessages('caller', position), [{ id: 'id', message: END }]);
  t.equal(await store.sendSampleMessage('id', 'w', END), 'gone');
});

t.test('requests of a caller that is gone end', async (t) => {
  const { store, redis, key } = await open(t);
  for (const id of ['renewed', 'sent']) await store.requestSample(testSample(id));
  await takeSamples(store);
  t.ok((await redis.pttl(key('sample-caller:caller'))) > 0);
  await redis.del(key('sample-caller:caller'));
  t.equal(await store.sendSampleMessage('sent', 'w', END), 'gone');
  t.strictSame(await store.renewSamples('default', 'w', ['renewed'], LONG_MS), ['renewed']);
  t.strictSame(await store.countSamples('default'), { waiting: 0, taken: 0 });
});

t.test('a pool that a request names has a worker or a job; nothing stays of one without', async (t) => {
  const { store, redis, keys, key } = await open(t);
  const named = (id: string, pool: string) => store.requestSample(testSample(id, { pool, named: true }));
  await t.rejects(named('a', 'none'), { code: 'pool_not_found' });
  t.strictSame(await keys(), []);
  await store.announceWorker({ ...testWorker('w', 1), pool: 'works' }, LONG_MS);
  await named('b', 'works');
  await createTestJob(store, { resources: { pool: 'waits' } });
  await named('c', 'waits');
  for (const pool of ['works', 'waits']) t.ok((await redis.pttl(key(`pool:${pool}:samples`))) > 0);
  t.ok((await redis.pttl(key('sample:b'))) > 0);
  await takeSamples(store, { pool: 'works' });
  t.ok((await redis.pttl(key('pool:works:samples-taken'))) > 0);
});

t.test('a full Redis takes no requests, and ends those that it has', async (t) => {
  const { store, redis } = await open(t);
  for (const id of ['ends', 'returns']) await store.requestSample(testSample(id));
  await redis.config('SET', 'maxmemory', '1');
  t.teardown(() => redis.config('SET', 'maxmemory', '0'));
  await t.rejects(store.requestSample(testSample('new')), { code: 'redis_full' });
  t.match(await takeSamples(store), { length: 2 });
  t.strictSame(await store.renewSamples('default', 'w', ['ends', 'returns'], LONG_MS), []);
  t.equal(await store.sendSampleMessage('ends', 'w', END), 'sent');
  t.match(await store.readMessages('caller', null), [{ id: 'ends' }]);
  await store.releaseSample('returns', 'w');
  await store.abandonSample('returns');
  t.strictSame(await store.countSamples('default'), { waiting: 0, taken: 0 });
});
