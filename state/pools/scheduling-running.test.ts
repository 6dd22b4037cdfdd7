/** Effects of decisions on running jobs: preemption, growth, and replaced slots. */
import t, { type Test } from 'tap';
import type { Job } from '../../contracts/index.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { executionAt } from '../testing/executions.js';
import { byWorker, TestPool } from '../testing/pools.js';

const HOUR_MS = 3_600_000;
const LEASE_MS = 60_000;
const server = await startTestRedis();
t.teardown(() => server.stop());

const open = (t: Test, workers: Record<string, number> = { a: 2 }) => TestPool.open(t, server, workers);

t.test('preemption requests are made, and withdrawn when no job needs them any more', async (t) => {
  const ends: Record<string, (pool: TestPool, next: Job) => Promise<unknown>> = {
    cancelled: (pool, next) => pool.store.requestCancel(next.id),
    paused: (pool, next) => pool.store.requestPause(next.id),
    placed: async (pool, next) => {
      await pool.announce('b', 2);
      return pool.placements(next);
    },
  };
  for (const [end, act] of Object.entries(ends)) {
    const pool = await open(t);
    const running = await pool.job({ min: 2 });
    await pool.placements(running);
    const next = await pool.job({ min: 2, priority: 1 });
    t.equal(await pool.placements(next), null);
    const values: (number | null)[] = [];
    const unwatch = await pool.store.watchControl(running.id, ({ preemption_request }) =>
      values.push(preemption_request),
    );
    t.equal(values.at(-1), 0, end);
    await act(pool, next);
    while (values.at(-1) !== null) await new Promise((done) => setImmediate(done));
    await unwatch();
    t.equal(await pool.preemptionRequest(running), null, end);
  }
});

t.test('a job that was deleted since the snapshot gets no request', async (t) => {
  const pool = await open(t);
  const [requested, withdrawn] = [await pool.job(), await pool.job()];
  for (const job of [requested, withdrawn]) await pool.placements(job);
  const next = await pool.job({ min: 2, priority: 1 });
  const { version } = await pool.store.readSnapshot('default', 0);
  for (const { id } of [requested, withdrawn]) {
    await pool.store.finishJob(id, executionAt(id, 1), 'failed');
    await pool.store.deleteJob(id, { artifacts: true });
  }
  const decision = {
    starts: [],
    growth: [],
    requests: [{ job_id: requested.id, request: { ranks: 0, for: next.id } }],
    withdrawn: [withdrawn.id],
  };
  t.ok(await pool.store.applyDecision('default', version, decision, { claim_ms: LEASE_MS, waiting: [] }));
  for (const { id } of [requested, withdrawn]) t.strictSame(await pool.redis.keys(`*${id}*`), []);
});

t.test('a job that receives a preemption request releases the requested slots', async (t) => {
  const pool = await open(t, { a: 6 });
  const [old, young] = [await pool.job({ min: 1, ranks: 3 }), await pool.job({ min: 2, ranks: 3 })];
  for (const job of [old, young]) await pool.placements(job);
  const next = await pool.job({ min: 2, priority: 1 });
  t.equal(await pool.placements(next), null);
  t.same([await pool.preemptionRequest(old), await pool.preemptionRequest(young)].sort(), [2, 2]);
  for (const job of [old, young])
    t.same(await pool.store.adjustPlacements(job.id, executionAt(job.id, 1)), [{ worker_id: 'a', slots: 2 }]);
  t.equal(await pool.preemptionRequest(old), null, 'a job that has shrunk gets no further request');
  t.same(await pool.placements(next), { a: 2 });
});

t.test('a running job gets free slots after a while, and at once when a user requests them', async (t) => {
  const pool = await open(t, { a: 4 });
  const job = await pool.job({ min: 1, ranks: 1 });
  t.same(await pool.placements(job), { a: 1 });
  const values: number[] = [];
  const unwatch = await pool.store.watchControl(job.id, ({ held_ranks }) => values.push(held_ranks));
  t.teardown(unwatch);
  t.same(values, [1]);
  await pool.store.requestResize(job.id, 2);
  t.match((await pool.decide(HOUR_MS)).growth, [{ job_id: job.id }]);
  while (values.at(-1) !== 2) await new Promise((done) => setImmediate(done));
  await pool.redis.hset(pool.key(`job:${job.id}`), 'requested_ranks', '4');
  t.same((await pool.decide(HOUR_MS)).growth, [], 'it grew a moment ago');
  t.match((await pool.decide(0)).growth, [{ job_id: job.id }]);
  t.equal((await pool.store.renewLease(job.id, executionAt(job.id, 1), LEASE_MS)).held_ranks, 4);
  t.same(await pool.used(), { a: 4 });
});

t.test('slots on a worker that is gone or leaves are replaced, or the job is released', async (t) => {
  const pool = await open(t, { a: 2, b: 1, c: 1 });
  const job = await pool.job({ min: 3, ranks: 3 });
  t.same(await pool.placements(job), { a: 2, b: 1 });
  const adjusted = async () =>
    byWorker((await pool.store.adjustPlacements(job.id, executionAt(job.id, 1))) ?? []);
  await pool.store.withdrawWorker('b');
  t.same(await adjusted(), { a: 2, c: 1 });
  await pool.announce('c', 1, { draining: true });
  t.equal(
    await pool.store.adjustPlacements(job.id, executionAt(job.id, 1)),
    null,
    'two ranks are fewer than it needs',
  );
  await pool.announce('d', 4);
  t.same(await adjusted(), { a: 2, d: 1 });
  t.same(await pool.used(), { a: 2, c: 0, d: 1 });
  await t.rejects(pool.store.adjustPlacements(job.id, executionAt(job.id, 0)), { code: 'stale_epoch' });
  await t.rejects(pool.store.adjustPlacements('job_unknown', executionAt('job_unknown', 1)), {
    code: 'job_not_found',
  });
});
