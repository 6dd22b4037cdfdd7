/** Whose turn it is: priority and ageing, fair share, time; and what is asked of the jobs that run. */
import t from 'tap';
import type { Job } from '../../contracts/index.js';
import { byWorker, TestPool } from '../testing/pools.js';
import { startTestRedis } from '../testing/redis.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

t.test('of two that wait the one of higher priority comes first, whoever asks first', async (t) => {
  const pool = await TestPool.open(t, server, { a: 1 });
  const low = await pool.job();
  const high = await pool.job({ priority: 1 });
  t.equal(await pool.places(low, 'a'), null);
  t.strictSame(await pool.places(high, 'a'), { a: 1 });
});

t.test('a minute of waiting is worth a point of priority', async (t) => {
  const pool = await TestPool.open(t, server, { a: 1 });
  const low = await pool.job({ priority: -100 });
  await pool.age(low, 202);
  const high = await pool.job({ priority: 100 });
  t.equal(await pool.places(high, 'a'), null, 'nothing starves');
  t.strictSame(await pool.places(low, 'a'), { a: 1 });
});

t.test(
  'of two that are equal, the one comes first whose project uses fewer slots, then the older one',
  async (t) => {
    const pool = await TestPool.open(t, server, { a: 3 });
    const running = await pool.job({ ranks: 1, project: 'busy' });
    await pool.places(running, 'a');
    const jobs = [
      await pool.job({ min: 2, project: 'busy' }),
      await pool.job({ min: 2, project: 'idle' }),
      await pool.job({ min: 2, project: 'idle' }),
    ] as const;
    // Waiting counts by the minute: as if all of them had been queued in the same one.
    const score = await pool.redis.zscore(pool.key('pool:default:waiting'), jobs[0].id);
    for (const { id } of jobs) await pool.redis.zadd(pool.key('pool:default:waiting'), Number(score), id);
    t.equal(await pool.places(jobs[0], 'a'), null);
    t.equal(await pool.places(jobs[2], 'a'), null);
    t.strictSame(await pool.places(jobs[1], 'a'), { a: 2 });
  },
);

t.test('smaller jobs pass the first one, until it has waited long', async (t) => {
  const pool = await TestPool.open(t, server, { a: 4 });
  const running = await pool.job({ min: 2 });
  await pool.places(running, 'a');
  const big = await pool.job({ min: 4, priority: 5 });
  const [small, other] = [await pool.job(), await pool.job()];
  t.equal(await pool.places(big, 'a'), null);
  t.strictSame(await pool.places(small, 'a'), { a: 1 });
  await pool.age(big, 2);
  t.equal(await pool.places(other, 'a'), null, 'the last slot is kept for the big one');
  await pool.store.finishJob(running.id, 1, 'failed');
  await pool.store.finishJob(small.id, 1, 'failed');
  t.equal(await pool.places(other, 'a'), null);
  t.strictSame(await pool.places(big, 'a'), { a: 4 });
});

t.test('nothing is kept for a job that can not come', async (t) => {
  const pool = await TestPool.open(t, server, { a: 2, b: 2 });
  const impossible = await pool.job({ min: 8 });
  const lost = await pool.job({ min: 2 });
  for (const job of [impossible, lost]) await pool.age(job, 60);
  await pool.forget(lost);
  const paused = await pool.job({ min: 2 });
  await pool.age(paused, 60);
  await pool.store.requestPause(paused.id);
  t.strictSame(await pool.places(await pool.job({ min: 2 }), 'a'), { a: 2 });
  t.strictSame(await pool.places(await pool.job({ min: 2 }), 'b'), { b: 2 });
  t.match(await pool.store.listPools(), [{ running: 2, waiting: 2 }]);
});

t.test('a place is kept on the emptiest worker, others may go elsewhere', async (t) => {
  const pool = await TestPool.open(t, server, { a: 4, b: 2 });
  const first = await pool.job({ min: 3 });
  const second = await pool.job({ min: 2 });
  t.equal(await pool.places(first, 'b'), null);
  t.equal(await pool.places(second, 'a'), null);
  t.strictSame(await pool.places(second, 'b'), { b: 2 });
  t.strictSame(await pool.places(first, 'a'), { a: 3 });
});

t.test('a job that is next asks lower ones to shrink, no more than it needs and each once', async (t) => {
  const pool = await TestPool.open(t, server, { a: 6 });
  const [old, young] = [await pool.job({ min: 1, ranks: 3 }), await pool.job({ min: 2, ranks: 3 })];
  for (const job of [old, young]) await pool.places(job, 'a');
  const equal = await pool.job({ min: 2 });
  t.equal(await pool.places(equal, 'a'), null);
  t.strictSame([await pool.ask(old), await pool.ask(young)], [null, null], 'nothing is asked by an equal');
  const next = await pool.job({ min: 2, priority: 1 });
  t.equal(await pool.places(next, 'a'), null);
  t.strictSame([await pool.ask(old), await pool.ask(young)], [2, 2], 'one of each: a third would be too few');
  t.strictSame(await pool.store.adjustPlaces(young.id, 1, { spread: false }), [{ worker_id: 'a', slots: 2 }]);
  t.equal(await pool.places(next, 'a'), null);
  t.equal(await pool.ask(young), null, 'who gave is not asked again');
  t.strictSame(await pool.store.adjustPlaces(old.id, 1, { spread: false }), [{ worker_id: 'a', slots: 2 }]);
  t.equal(await pool.places(equal, 'a'), null, 'what was given up is for the one that asked');
  t.strictSame(await pool.places(next, 'a'), { a: 2 });
});

t.test('who has waited long may ask others to shrink, but only a higher priority ends them', async (t) => {
  const pool = await TestPool.open(t, server, { a: 2 });
  const running = await pool.job({ min: 1, ranks: 2 });
  await pool.places(running, 'a');
  const aged = await pool.job({ min: 2 });
  await pool.age(aged, 30);
  t.equal(await pool.places(aged, 'a'), null);
  t.equal(await pool.ask(running), null, 'one slot would not be enough');
  const higher = await pool.job({ min: 2, priority: 50 });
  t.equal(await pool.places(higher, 'a'), null);
  t.equal(await pool.ask(running), 0);
  t.equal(await pool.store.adjustPlaces(running.id, 1, { spread: false }), null);
  await pool.store.releaseAttempt(running.id, 1, { to: 'queued', reason: 'preempted' });
  t.strictSame(await pool.places(higher, 'a'), { a: 2 });
});

t.test('a job that waited its way up is not thrown out by one that it has overtaken', async (t) => {
  const pool = await TestPool.open(t, server, { a: 1 });
  const aged = await pool.job();
  await pool.age(aged, 20);
  t.strictSame(await pool.places(aged, 'a'), { a: 1 });
  const higher = await pool.job({ priority: 10 });
  t.equal(await pool.places(higher, 'a'), null);
  t.equal(await pool.ask(aged), null);
  t.equal(await pool.places(await pool.job({ priority: 40 }), 'a'), null);
  t.equal(await pool.ask(aged), 0);
});

t.test('a job keeps what it was asked for when nobody needs it any more', async (t) => {
  const pool = await TestPool.open(t, server, { a: 2 });
  const running = await pool.job({ min: 1, ranks: 2 });
  await pool.places(running, 'a');
  const next = await pool.job({ priority: 1 });
  await pool.places(next, 'a');
  t.equal(await pool.ask(running), 1);
  await pool.store.requestCancel(next.id);
  t.equal(await pool.ask(running), null, 'the request is withdrawn');
  t.strictSame(await pool.store.adjustPlaces(running.id, 1, { spread: false }), [
    { worker_id: 'a', slots: 2 },
  ]);
});

t.test(
  'a request for room does not outlive the job that asked, and each who was asked is told',
  async (t) => {
    const ends: Record<string, (pool: TestPool, next: Job) => Promise<unknown>> = {
      cancelled: (pool, next) => pool.store.requestCancel(next.id),
      paused: (pool, next) => pool.store.requestPause(next.id),
      placed: async (pool, next) => {
        await pool.announce('b', 2);
        return pool.places(next, 'b');
      },
      'asked for by nobody': (pool, next) => pool.forget(next),
    };
    for (const [end, act] of Object.entries(ends)) {
      const pool = await TestPool.open(t, server, { a: 2 });
      const running = await pool.job({ min: 2 });
      await pool.places(running, 'a');
      const next = await pool.job({ min: 2, priority: 1 });
      await pool.places(next, 'a');
      const told: (number | null)[] = [];
      const unwatch = await pool.store.watchControl(running.id, ({ ask }) => told.push(ask));
      t.equal(told.at(-1), 0, end);
      await act(pool, next);
      if (end === 'asked for by nobody') t.equal(await pool.ask(running), null);
      while (told.at(-1) !== null) await new Promise((done) => setImmediate(done));
      await unwatch();
      t.equal(await pool.ask(running), null, end);
    }
  },
);

t.test('a running job takes more slots only while nobody waits for them', async (t) => {
  const pool = await TestPool.open(t, server, { a: 4, b: 2 });
  const blocker = await pool.job({ min: 3 });
  await pool.places(blocker, 'a');
  const job = await pool.job({ min: 1, ranks: 5 });
  t.strictSame(await pool.places(job, 'a'), { a: 1 });
  await pool.store.finishJob(blocker.id, 1, 'failed');
  const grow = async (spread: boolean) =>
    byWorker((await pool.store.adjustPlaces(job.id, 1, { spread, grow: true })) ?? []);
  const waiting = await pool.job({ min: 2 });
  t.strictSame(await grow(false), { a: 1 });
  await pool.store.requestCancel(waiting.id);
  t.strictSame(await grow(false), { a: 4 });
  t.strictSame(await grow(true), { a: 4, b: 1 });
  t.strictSame(await pool.used(), { a: 4, b: 1 });
  await pool.store.requestResize(job.id, 2);
  t.strictSame(await grow(true), { a: 4, b: 1 }, 'growing takes nothing away');
  t.strictSame(byWorker((await pool.store.adjustPlaces(job.id, 1, { spread: true })) ?? []), { a: 2 });
  await t.rejects(pool.store.adjustPlaces(job.id, 0, { spread: true }), { code: 'stale_epoch' });
});

t.test('places on a worker that is gone or leaves are replaced, or the job goes back', async (t) => {
  const pool = await TestPool.open(t, server, { a: 1, b: 2, c: 1 });
  const job = await pool.job({ min: 2, ranks: 3 });
  t.strictSame(await pool.places(job, 'a', { spread: true }), { a: 1, b: 2 });
  const adjust = () => pool.store.adjustPlaces(job.id, 1, { spread: true });
  await pool.store.withdrawWorker('b');
  t.strictSame(byWorker((await adjust()) ?? []), { a: 1, c: 1 });
  await pool.announce('c', 1, { draining: true });
  t.equal(await adjust(), null, 'one rank is fewer than it needs');
  await pool.announce('d', 4);
  t.strictSame(byWorker((await adjust()) ?? []), { a: 1, d: 2 });
});
