import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { until } from '../../platform/testing/waiting.js';
import { createTestJob } from '../../state/testing/jobs.js';
import { TestPool } from '../../state/testing/pools.js';
import { testGpu } from '../../state/testing/workers.js';
import { SchedulerLoop, type SchedulerOptions, type SchedulerTiming } from './scheduler-loop.js';

const LONG_MS = 600_000;
const log = createLogger({ level: 'silent', name: 'test' });
const server = await startTestRedis();
t.teardown(() => server.stop());

/** Starts a scheduler whose timers do not fire unless `timing` changes them. */
function run(
  t: Test,
  pool: TestPool,
  timing: Partial<SchedulerTiming> = {},
  more: Partial<SchedulerOptions> = {},
) {
  const loop = new SchedulerLoop({
    store: pool.store,
    removeQueue: async () => undefined,
    onAbandoned: async () => undefined,
    onUnplaceable: async () => undefined,
    timing: { tick_ms: LONG_MS, ...timing },
    log,
    ...more,
  });
  t.teardown(() => loop.close());
  return loop;
}

const allocated = async (pool: TestPool) =>
  Object.values(await pool.used()).reduce((sum, slots) => sum + slots, 0);

t.test('a queued job, a new worker and freed slots start jobs', async (t) => {
  const pool = await TestPool.open(t, server, {});
  run(t, pool);
  const [first, second] = [await pool.job({ min: 2 }), await pool.job({ min: 2 })];
  await pool.announce('a', 2);
  await until(async () => (await allocated(pool)) === 2);
  await pool.announce('b', 1);
  const claim = await pool.store.claimAttempt(first.id, 1, 'a', LONG_MS, { allocated: true });
  if (!claim.granted) throw new Error(claim.code);
  await pool.store.finishJob(first.id, claim.execution, 'failed');
  await until(async () => (await pool.store.getJob(second.id))?.queue_position === null);
  await pool.job();
  await until(async () => (await allocated(pool)) === 3);
  t.pass('only events triggered decisions');
});

t.test('a delayed job starts when it is due', async (t) => {
  const pool = await TestPool.open(t, server, { a: 1 });
  const job = await pool.job();
  const claim = await pool.claim(job);
  run(t, pool);
  await pool.store.releaseAttempt(job.id, claim?.execution ?? '0-', { to: 'queued', delay_ms: 300 });
  await until(async () => (await allocated(pool)) === 1);
  t.match(await pool.store.getJob(job.id), { attempt: 2 });
});

t.test('jobs of lost workers are queued again, and the queues of the workers are removed', async (t) => {
  const pool = await TestPool.open(t, server, { a: 1 });
  const job = await pool.job();
  await pool.claim(job, 1);
  await pool.store.withdrawWorker('a');
  const calls: string[] = [];
  run(
    t,
    pool,
    { tick_ms: 20 },
    {
      removeQueue: async (id) => void calls.push(`remove ${id}`),
      onAbandoned: async (ids) => void calls.push(...ids),
    },
  );
  await until(async () => (await pool.store.getJob(job.id))?.state === 'queued');
  await until(async () => calls.length === 3);
  t.same(calls, [job.id, 'remove a', 'remove a'], 'and once more, for entries delivered meanwhile');
  await until(async () => (await pool.store.removedWorkers()).length === 0);
});

t.test('a queue that can not be removed blocks no decision, and is retried', async (t) => {
  const pool = await TestPool.open(t, server, { a: 1 });
  for (const id of ['x', 'y']) await pool.store.withdrawWorker(id);
  const tried: string[] = [];
  const removeQueue = async (id: string) => {
    tried.push(id);
    if (id === 'x' && tried.length < 6) throw new Error('away');
  };
  run(t, pool, { tick_ms: 10 }, { removeQueue });
  const job = await pool.job();
  await until(async () => (await allocated(pool)) === 1);
  await until(async () => (await pool.store.removedWorkers()).length === 0);
  await until(async () => tried.filter((id) => id === 'y').length === 2);
  t.equal((await pool.store.getJob(job.id))?.queue_position, null);
});

t.test('a failing pool blocks no other, and is retried', async (t) => {
  const pool = await TestPool.open(t, server, { a: 1 });
  // Some of them precede the good one in any order of pools.
  const bad = await Promise.all(
    Array.from({ length: 8 }, async (_, n) => {
      await pool.announce(`bad-${n}`, 1, { pool: `bad-${n}` });
      const { id } = await createTestJob(pool.store, { resources: { pool: `bad-${n}` } });
      const key = pool.key(`pool:bad-${n}:waiting-jobs`);
      const demand = (await pool.redis.hget(key, id)) ?? '';
      await pool.redis.hset(key, id, '{');
      return { id, repair: () => pool.redis.hset(key, id, demand) };
    }),
  );
  run(t, pool, { tick_ms: 20 });
  for (let n = 0; n < 3; n += 1) {
    const job = await pool.job();
    await until(async () => (await pool.store.getJob(job.id))?.queue_position === null);
    const claim = await pool.store.claimAttempt(job.id, 1, 'a', LONG_MS, { allocated: true });
    if (!claim.granted) throw new Error(claim.code);
    await pool.store.finishJob(job.id, claim.execution, 'failed');
  }
  for (const { repair } of bad) await repair();
  for (const { id } of bad) await until(async () => (await pool.store.getJob(id))?.queue_position === null);
});

t.test('leftovers of a deleted job block nothing', async (t) => {
  const pool = await TestPool.open(t, server, { a: 1 });
  await pool.redis.sadd(pool.key('pool:default:holders'), 'job_gone');
  t.same((await pool.store.readSnapshot('default', 0)).snapshot.running, []);
  await pool.redis.sadd(pool.key('pool:default:holders'), 'job_gone');
  await pool.redis.zadd(pool.key('leases'), '1', 'job_gone');
  run(t, pool, { tick_ms: 20 });
  await pool.job();
  await until(async () => (await allocated(pool)) === 1);
  await until(async () => (await pool.redis.zcard(pool.key('leases'))) === 0);
  t.equal(await pool.redis.sismember(pool.key('pool:default:holders'), 'job_gone'), 0);
  t.equal(await pool.redis.exists(pool.key('job:job_gone')), 0);
});

t.test('jobs that no group could run are reported', async (t) => {
  const pool = await TestPool.open(t, server, {});
  await pool.announce('a', 1, { gpus: [testGpu('GPU-1')] });
  const job = await pool.job({ min: 2 });
  const named: string[] = [];
  run(t, pool, {}, { onUnplaceable: async (name, ids) => void named.push(name, ...ids) });
  await until(() => named.length > 0);
  t.same(named, ['default', job.id]);
  t.match(await pool.store.getJob(job.id), { reason: 'waiting_for_capacity' });
});

t.test('only the leader decides, and a follower takes over', async (t) => {
  const pool = await TestPool.open(t, server, { a: 2 });
  const calls = { first: 0, second: 0 };
  const counted = (name: keyof typeof calls) => ({
    store: {
      ...pool.store,
      readSnapshot: (...args: Parameters<typeof pool.store.readSnapshot>) => {
        calls[name] += 1;
        return pool.store.readSnapshot(...args);
      },
    },
  });
  const first = run(t, pool, { tick_ms: 20 }, counted('first'));
  await until(() => calls.first > 0);
  run(t, pool, { tick_ms: 20 }, counted('second'));
  await pool.job();
  await until(async () => (await allocated(pool)) === 1);
  t.equal(calls.second, 0);
  await first.close();
  await pool.job();
  await until(async () => (await allocated(pool)) === 2);
  t.ok(calls.second > 0);
});

t.test('a decision on a changed pool is repeated', async (t) => {
  const pool = await TestPool.open(t, server, { a: 1 });
  let conflicts = 2;
  const store = {
    ...pool.store,
    async readSnapshot(...args: Parameters<typeof pool.store.readSnapshot>) {
      const read = await pool.store.readSnapshot(...args);
      if (read.snapshot.waiting.length > 0 && conflicts-- > 0)
        await pool.announce('a', 1, { draining: conflicts === 1 });
      return read;
    },
  };
  run(t, pool, {}, { store });
  await pool.job();
  await until(async () => (await allocated(pool)) === 1);
  t.ok(conflicts < 0);
});

t.test('failures are retried', async (t) => {
  const pool = await TestPool.open(t, server, { a: 1 });
  let failures = 3;
  const store = {
    ...pool.store,
    readSnapshot: async (...args: Parameters<typeof pool.store.readSnapshot>) => {
      if (failures-- > 0) throw new Error('away');
      return pool.store.readSnapshot(...args);
    },
  };
  run(t, pool, { tick_ms: 10 }, { store });
  await pool.job();
  await until(async () => (await allocated(pool)) === 1);
  t.ok(failures < 0);
});

/** A store with many pools, which have nothing to decide. */
function manyPools(pool: TestPool, names: readonly string[], onRead: (name: string) => Promise<void> | void) {
  const calls: string[] = [];
  const store: SchedulerOptions['store'] = {
    ...pool.store,
    schedulerPools: async () => [...names],
    async readSnapshot(name) {
      calls.push(name);
      await onRead(name);
      const snapshot = { now: 0, workers: [], running: [], waiting: [], served_at: new Map() };
      return { version: '1', delayed: [], snapshot };
    },
    async acquireLeaderLease(...args) {
      calls.push('lease');
      return pool.store.acquireLeaderLease(...args);
    },
  };
  return { store, calls };
}

t.test('the lease is renewed during a round of many pools', async (t) => {
  const pool = await TestPool.open(t, server, {});
  const names = Array.from({ length: 20 }, (_, n) => `pool-${n}`);
  const { store, calls } = manyPools(pool, names, () => sleep(5));
  // Every decision takes longer than the time after which the lease is renewed.
  run(t, pool, { leader_ms: 3 }, { store });
  await until(() => calls.includes('pool-19'));
  t.same(
    calls.slice(0, 40),
    names.flatMap((name) => ['lease', name]),
  );
});

t.test('a changed pool does not wait for the end of a round, nor the round for changes', async (t) => {
  const pool = await TestPool.open(t, server, {});
  const names = Array.from({ length: 20 }, (_, n) => `pool-${n}`);
  let change: (name: string) => void = () => undefined;
  const { store, calls } = manyPools(pool, names, () => {
    change('busy');
    // A loop that never waits for a server would leave the test no time.
    return sleep(1);
  });
  const watched: typeof store = {
    ...store,
    async watchPools(onChange) {
      change = onChange;
      return async () => undefined;
    },
  };
  run(t, pool, { leader_ms: LONG_MS }, { store: watched });
  await until(() => calls.includes('pool-19'));
  const seen = calls.filter((call) => call !== 'lease');
  t.same(seen.slice(0, 3), ['pool-0', 'busy', 'pool-1']);
  t.equal(seen.indexOf('pool-19'), 38);
});
