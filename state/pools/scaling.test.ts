/** Demand that an autoscaler reads, and removal of a machine without preempting a job. */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { startTestRedis } from '../../platform/testing/redis.js';
import { executionAt } from '../testing/executions.js';
import { TestPool } from '../testing/pools.js';
import { testGpu, testWorker } from '../testing/workers.js';

const LEASE_MS = 60_000;
const server = await startTestRedis();
t.teardown(() => server.stop());

const demandOf = async ({ store }: TestPool) => {
  const [pool] = await store.readDemand(['default']);
  if (!pool) throw new Error('no pool');
  return pool;
};

t.test('jobs that hold ranks and waiting jobs, in order, with workers and quotas', async (t) => {
  const pool = await TestPool.open(t, server, { a: 4, b: 2 });
  await pool.store.announceWorker(testWorker('c', 2, { machine: 'i-1', draining: true }), LEASE_MS);
  await pool.store.putQuota('small', { max_jobs: null, max_ranks: 6, max_storage_bytes: null });
  const runs = await pool.job({ min: 2, ranks: 4 });
  await pool.placements(runs);
  const waits = await pool.job({ min: 8 });
  const first = await pool.job({ min: 2, ranks: 5, priority: 7, project: 'small' });
  const { scheduling, ...demand } = await demandOf(pool);
  t.match(scheduling, { workers: { length: 3 }, running: [{ id: runs.id }], waiting: { length: 2 } });
  t.same(demand, {
    name: 'default',
    jobs: [
      { id: runs.id, project: 'default', priority: 0, need: 2, want: 4, multiple: 1, held: 4 },
      { id: waits.id, project: 'default', priority: 0, need: 8, want: 8, multiple: 1, held: 0 },
      { id: first.id, project: 'small', priority: 7, need: 2, want: 5, multiple: 1, held: 0 },
    ],
    workers: [
      {
        id: 'a',
        machine: null,
        numerics: null,
        slots: 4,
        free: 0,
        busy: true,
        draining: false,
        retiring: false,
        save_seconds: null,
      },
      {
        id: 'b',
        machine: null,
        numerics: null,
        slots: 2,
        free: 2,
        busy: false,
        draining: false,
        retiring: false,
        save_seconds: null,
      },
      {
        id: 'c',
        machine: 'i-1',
        numerics: null,
        slots: 2,
        free: 0,
        busy: false,
        draining: true,
        retiring: false,
        save_seconds: null,
      },
    ],
    quotas: { small: 6 },
  });
  t.match(await pool.store.readDemand(['none']), [{ name: 'none', jobs: [], workers: [], quotas: {} }]);
});

t.test('a waiting or delayed job is listed once, with its current document', async (t) => {
  const pool = await TestPool.open(t, server, { a: 4 });
  const job = await pool.job({ min: 3 });
  await pool.claim(job, 1);
  await sleep(5);
  await pool.store.requeueAbandoned(0);
  t.match((await demandOf(pool)).jobs, [{ id: job.id, need: 3, held: 0 }]);
  const claim = await pool.claim(job);
  if (!claim) throw new Error('it has to wait');
  await pool.store.releaseAttempt(job.id, claim.execution, { to: 'queued', delay_ms: LEASE_MS });
  t.match((await demandOf(pool)).jobs, [{ id: job.id, want: 3, held: 0 }]);
  t.same((await pool.decide()).starts, [], 'it takes no turn');
  await pool.store.requestResize(job.id, 4);
  t.match((await demandOf(pool)).jobs, [{ id: job.id, want: 4, held: 0 }]);
  await pool.store.requestCancel(job.id);
  t.same((await demandOf(pool)).jobs, []);
});

t.test('on GPUs a job needs as many ranks as its memory requires on the available GPUs', async (t) => {
  const pool = await TestPool.open(t, server, {});
  const gpu = (id: string, gib: number) =>
    pool.announce(id, 1, { gpus: [testGpu(id, { memory_bytes: gib * 2 ** 30 })] });
  const job = await pool.job({ min: 1, ranks: 4 });
  const sizes = [80, 40, 27, 20].map((gib, i) => [i + 1, gib * 2 ** 30]);
  await pool.store.requestPause(job.id);
  await pool.redis.hset(pool.key(`job:${job.id}`), 'gpu_bytes', JSON.stringify(sizes));
  await pool.store.resumeJob(job.id);
  await gpu('a', 24);
  t.match((await demandOf(pool)).jobs, [{ need: 4, want: 4 }]);
  await gpu('b', 80);
  t.match((await demandOf(pool)).jobs, [{ need: 1, want: 4 }]);
});

t.test('workers are retired all or none, and never a busy one', async (t) => {
  const pool = await TestPool.open(t, server, { a: 4, b: 4 });
  const job = await pool.job({ min: 2 });
  t.same(await pool.placements(job), { a: 2 });
  t.same(await pool.store.retireWorkers(['a', 'b']), ['a']);
  const other = await pool.job({ min: 2 });
  t.same(await pool.store.retireWorkers(['b', 'unknown']), []);
  t.match((await demandOf(pool)).workers, [
    { id: 'a', busy: true, draining: false, retiring: false },
    { id: 'b', busy: false, draining: true, retiring: true },
  ]);
  const wide = await pool.job({ min: 3 });
  t.equal(await pool.placements(wide), null, 'no new work begins on retired workers');
  await pool.announce('b', 4);
  t.equal(await pool.placements(wide), null, 'also after another announcement');
  await pool.store.requestCancel(wide.id);
  t.match(await pool.store.listWorkers(), [{ draining: false }, { draining: true }]);
  t.same(await pool.placements(other), { a: 2 });
  await pool.store.withdrawWorker('b');
  await pool.announce('b', 4);
  t.same(await pool.store.retireWorkers(['unknown']), []);
  t.notOk((await demandOf(pool)).workers.some(({ id }) => id === 'unknown'));
});

t.test('a worker with ranks of a job that another worker leads is busy', async (t) => {
  const pool = await TestPool.open(t, server, { a: 2, b: 2 });
  const job = await pool.job({ min: 4 });
  t.same(await pool.placements(job), { a: 2, b: 2 });
  t.same(await pool.store.retireWorkers(['b']), ['b']);
});

t.test('a worker that leads a job without placements of its own is busy', async (t) => {
  const pool = await TestPool.open(t, server, { a: 4 });
  const job = await pool.job({ min: 1 });
  await pool.store.claimAttempt(job.id, job.attempt, 'a', LEASE_MS);
  t.same(await pool.store.retireWorkers(['a']), ['a']);
});

t.test('jobs move from a vacated worker and hold slots all the time', async (t) => {
  const pool = await TestPool.open(t, server, { a: 4, b: 4 });
  const [first, second] = [await pool.job({ min: 3 }), await pool.job({ min: 2 })];
  t.same(await pool.placements(first), { a: 3 });
  t.same(await pool.placements(second), { b: 2 });
  t.equal(await pool.store.vacateWorkers('default', ['a']), false, 'it does not fit');
  t.match((await demandOf(pool)).workers, [{ retiring: false }, { retiring: false }]);
  const execution = executionAt(second.id, 1);
  t.equal((await pool.store.renewLease(second.id, execution, LEASE_MS)).moves, false);
  await pool.store.finishJob(first.id, executionAt(first.id, 1), 'failed');
  const small = await pool.job({ min: 1 });
  t.same(await pool.placements(small), { b: 1 });
  await pool.announce('c', 4);
  const third = await pool.job({ min: 4 });
  t.same(await pool.placements(third), { a: 4 });
  await pool.store.finishJob(third.id, executionAt(third.id, 1), 'failed');
  const fourth = await pool.job({ min: 1 });
  await pool.announce('b', 4, { draining: true });
  t.same(await pool.placements(fourth), { a: 1 });
  await pool.announce('b', 4);

  t.equal(await pool.store.vacateWorkers('default', ['b']), true);
  t.same(await pool.used(), { a: 4, b: 3, c: 0 }, 'slots are reserved');
  t.equal((await pool.store.renewLease(second.id, execution, LEASE_MS)).moves, true);
  t.same(await pool.store.retireWorkers(['a']), ['a'], 'a machine that jobs move to is in use');
  t.equal(await pool.store.vacateWorkers('default', ['a']), false, 'no job moves twice');
  t.equal(await pool.store.adjustPlacements(second.id, execution), null, 'its leader is another worker');
  const released = await pool.store.releaseAttempt(second.id, execution, {
    to: 'queued',
    reason: 'waiting_for_capacity',
    preempted: true,
  });
  t.match(released, { state: 'queued', reason: 'moved', attempt: 2 });
  t.same(await pool.used(), { a: 4, b: 1, c: 0 });
  t.equal(
    await pool.redis.hget(pool.key(`job:${second.id}`), 'preemptions'),
    null,
    'a move is no preemption',
  );
  const claim = await pool.store.claimAttempt(second.id, 2, 'a', LEASE_MS, { allocated: true });
  t.match(claim, { granted: true, placements: [{ worker_id: 'a', slots: 2 }], control: { moves: false } });
});

t.test('a job that ends, pauses or waits for a retry gives up the slots reserved for its move', async (t) => {
  const pool = await TestPool.open(t, server, { a: 4, b: 4 });
  const stays = await pool.job({ min: 1 });
  t.same(await pool.placements(stays), { a: 1 });
  await pool.announce('a', 4, { draining: true });
  const ends = {
    ended: (id: string) => pool.store.finishJob(id, executionAt(id, 1), 'failed'),
    paused: (id: string) => pool.store.releaseAttempt(id, executionAt(id, 1), { to: 'paused' }),
    delayed: (id: string) =>
      pool.store.releaseAttempt(id, executionAt(id, 1), { to: 'queued', reason: 'oom', delay_ms: LEASE_MS }),
  };
  for (const [name, end] of Object.entries(ends)) {
    const job = await pool.job({ min: 2 });
    await pool.announce('a', 4, { draining: true });
    t.same(await pool.placements(job), { b: 2 });
    await pool.announce('a', 4);
    t.equal(await pool.store.vacateWorkers('default', ['b']), true);
    t.same(await pool.used(), { a: 3, b: 2 });
    await end(job.id);
    t.same(await pool.used(), { a: 1, b: 0 }, name);
    await pool.store.withdrawWorker('b');
    await pool.announce('b', 4);
  }
});

t.test('ranks that follow a leader that stays move in place', async (t) => {
  const pool = await TestPool.open(t, server, { a: 2, b: 2, c: 3 });
  const gang = await pool.job({ min: 4 });
  await pool.announce('c', 3, { draining: true });
  t.same(await pool.placements(gang), { a: 2, b: 2 });
  await pool.announce('c', 3);
  const other = await pool.job({ min: 1 });
  t.same(await pool.placements(other), { c: 1 });
  t.equal(await pool.store.vacateWorkers('default', ['b']), true);
  t.same(await pool.store.adjustPlacements(gang.id, executionAt(gang.id, 1)), [
    { worker_id: 'a', slots: 2 },
    { worker_id: 'c', slots: 2 },
  ]);
  t.same(await pool.used(), { a: 2, b: 0, c: 3 });
  t.equal((await pool.store.renewLease(gang.id, executionAt(gang.id, 1), LEASE_MS)).moves, false);
  t.same(await pool.store.retireWorkers(['b']), [], 'the empty machine can be retired');
});

t.test('a leader lease has one holder at a time, and passes on its state', async (t) => {
  const { store } = await TestPool.open(t, server, {});
  t.same(await store.acquireLeaderLease('o', 'one', LEASE_MS), { leads: true, state: '' });
  t.same(await store.acquireLeaderLease('o', 'one', LEASE_MS, 'note'), { leads: true, state: 'note' });
  t.same(await store.acquireLeaderLease('o', 'two', LEASE_MS, 'mine'), { leads: false, holder: 'one' });
  t.same(await store.acquireLeaderLease('o', 'one', 0), { leads: true, state: 'note' });
  t.same(await store.acquireLeaderLease('o', 'two', 1), { leads: true, state: 'note' });
  await sleep(5);
  t.same(await store.acquireLeaderLease('o', 'one', LEASE_MS), { leads: true, state: 'note' });
});

t.test('drained machines are remembered', async (t) => {
  const { store } = await TestPool.open(t, server, {});
  t.same(await store.drainedMachines(), []);
  await store.reportDrained('i-1');
  await store.reportDrained('i-2');
  await store.reportDrained('i-1');
  t.same((await store.drainedMachines()).sort(), ['i-1', 'i-2']);
});
