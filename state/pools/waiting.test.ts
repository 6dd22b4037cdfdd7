import t, { type Test } from 'tap';
import { startTestRedis } from '../../platform/testing/redis.js';
import { executionAt } from '../testing/executions.js';
import { TestPool } from '../testing/pools.js';

const HOUR_MS = 3_600_000;
const server = await startTestRedis();
t.teardown(() => server.stop());

const open = (t: Test, workers: Record<string, number> = { a: 2 }, numerics: Record<string, string> = {}) =>
  TestPool.open(t, server, workers, numerics);

const begun = async (pool: TestPool) => (await pool.decide()).starts.map(({ job_id }) => job_id);

t.test('waiting jobs have that state, and get the slots that others release', async (t) => {
  const pool = await open(t);
  const [first, second] = [await pool.job({ min: 2 }), await pool.job({ min: 2 })];
  t.same(await pool.placements(first), { a: 2 });
  t.equal(await pool.placements(second), null);
  t.match(await pool.store.getJob(second.id), {
    state: 'queued',
    reason: 'waiting_for_capacity',
    queue_position: 1,
  });
  t.match(await pool.store.listPools(), [{ running: 1, waiting: 1 }]);
  await pool.store.releaseAttempt(first.id, executionAt(first.id, 1), { to: 'paused' });
  t.same(await pool.placements(second), { a: 2 });
  t.match(await pool.store.listPools(), [{ running: 1, waiting: 0 }]);
});

t.test('a hundred and fifty jobs that can run nowhere do not block others', async (t) => {
  const pool = await open(t);
  for (let i = 0; i < 150; i += 1) await pool.job({ min: 8, priority: 1 });
  const small = await pool.job();
  t.same(await begun(pool), [small.id]);
});

t.test('a delayed job begins to wait when it is due, and its pool has that time', async (t) => {
  const pool = await open(t);
  const job = await pool.job();
  await pool.claim(job);
  await pool.store.releaseAttempt(job.id, executionAt(job.id, 1), { to: 'queued', delay_ms: HOUR_MS });
  const { delayed, snapshot } = await pool.store.readSnapshot('default', 0);
  t.equal(snapshot.waiting.length, 0);
  t.match(delayed, [{ id: job.id }]);
  t.ok(Math.abs((delayed[0]?.queued_at ?? 0) - snapshot.now - HOUR_MS) < 60_000);
  await pool.redis.zincrby(pool.key('pool:default:delayed'), -HOUR_MS, job.id);
  t.same(await pool.placements(job), { a: 1 });
});

t.test('a job keeps waiting when the clock is set back', async (t) => {
  const pool = await open(t);
  const job = await pool.job();
  await pool.age(job, -60);
  t.match((await pool.store.readSnapshot('default', 0)).snapshot.waiting, [{ id: job.id }]);
  t.same(await pool.placements(job), { a: 1 });
});
