/** Effects of a scheduler's decision on jobs and slots, and its refusal. scheduler/ tests the decisions themselves. */
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Job } from '../../contracts/index.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { place } from '../../scheduler/place.js';
import { executionAt } from '../testing/executions.js';
import { decide, TestPool } from '../testing/pools.js';
import { testGpu } from '../testing/workers.js';

const HOUR_MS = 3_600_000;
const LEASE_MS = 60_000;
const GIB = 2 ** 30;
const server = await startTestRedis();
t.teardown(() => server.stop());

const open = (t: Test, workers: Record<string, number> = { a: 2 }, numerics: Record<string, string> = {}) =>
  TestPool.open(t, server, workers, numerics);

/** Returns the entries of the outbox as text. */
async function outbox(pool: TestPool): Promise<string[]> {
  return (await pool.redis.xrange(pool.key('outbox'), '-', '+')).map(([, fields]) => fields.join(' '));
}

const begun = async (pool: TestPool) => (await pool.decide()).starts.map(({ job_id }) => job_id);

t.test('a job that begins holds its slots, and its leader is notified', async (t) => {
  const pool = await open(t, { a: 2, b: 4 });
  const job = await pool.job({ min: 5 });
  t.same(await outbox(pool), [], 'no worker is notified of a waiting job');
  t.same(await begun(pool), [job.id]);
  t.same(await outbox(pool), [`job_id ${job.id} attempt 1 worker_id b`]);
  t.same(await pool.used(), { a: 1, b: 4 });
  t.match(await pool.store.getJob(job.id), { state: 'queued', queue_position: null, epoch: 0 });
  const claim = (worker: string, attempt = 1) =>
    pool.store.claimAttempt(job.id, attempt, worker, LEASE_MS, { allocated: true });
  t.match(await claim('a'), { granted: false, code: 'attempt_superseded' }, 'only its leader may claim it');
  t.match(await claim('b'), {
    granted: true,
    job: { epoch: 1 },
    placements: [
      { worker_id: 'b', slots: 4 },
      { worker_id: 'a', slots: 1 },
    ],
  });
  t.match(await claim('b'), { granted: false, code: 'attempt_superseded' }, 'once');
  t.same(await pool.used(), { a: 1, b: 4 });
  await pool.store.finishJob(job.id, executionAt(job.id, 1), 'failed');
  t.same(await pool.used(), { a: 0, b: 0 });
});

t.test('an unclaimed allocation is taken back, and the job keeps its turn', async (t) => {
  const ends: Record<string, (pool: TestPool, job: Job) => Promise<unknown>> = {
    'in time': (pool, job) => pool.redis.hset(pool.key(`job:${job.id}`), 'allocated_until', '1'),
    'since its leader leaves': (pool) => pool.announce('a', 2, { draining: true }),
    'since its leader is gone': (pool) => pool.store.withdrawWorker('a'),
    'since its leader was not heard of': (pool) => pool.redis.zadd(pool.key('pool:default:workers'), 1, 'a'),
  };
  for (const [why, end] of Object.entries(ends)) {
    const pool = await open(t, { a: 2 });
    const job = await pool.job({ min: 2 });
    await pool.age(job, 7);
    t.same(await begun(pool), [job.id]);
    await end(pool, job);
    await pool.announce('b', 2);
    const { snapshot } = await pool.store.readSnapshot('default', 0);
    t.match(snapshot.waiting, [{ id: job.id }], why);
    t.ok(snapshot.now - (snapshot.waiting[0]?.queued_at ?? 0) >= 7 * 60_000, 'it keeps its turn');
    t.match(await pool.store.getJob(job.id), { state: 'queued', attempt: 2, queue_position: 1 });
    t.match(await pool.store.claimAttempt(job.id, 1, 'a', LEASE_MS, { allocated: true }), {
      code: 'attempt_superseded',
    });
    t.ok(await pool.placements(job));
  }
});

t.test('stopping a job takes its allocation back', async (t) => {
  for (const act of ['requestPause', 'requestCancel'] as const) {
    const pool = await open(t);
    const [job, next] = [await pool.job({ min: 2 }), await pool.job({ min: 2 })];
    t.same(await begun(pool), [job.id]);
    await pool.store[act](job.id);
    t.same(await pool.used(), { a: 0 });
    t.match(await pool.store.claimAttempt(job.id, 1, 'a', LEASE_MS, { allocated: true }), {
      granted: false,
    });
    t.same(await begun(pool), [next.id]);
  }
});

t.test('a decision is refused after a change of something that it depends on', async (t) => {
  const changes: Record<string, [refused: boolean, (pool: TestPool, job: Job) => Promise<unknown>]> = {
    'another decision': [true, (pool) => decide(pool.store)],
    'a new worker': [true, (pool) => pool.announce('b', 2)],
    'a worker that is gone': [true, (pool) => pool.store.withdrawWorker('a')],
    'a worker that leaves': [true, (pool) => pool.announce('a', 2, { draining: true })],
    'a worker that is retired': [true, (pool) => pool.store.retireWorkers(['a'])],
    'the ranks that a job wants': [true, (pool, job) => pool.store.requestResize(job.id, 2)],
    'a worker that says the same again': [false, (pool) => pool.announce('a', 2)],
    'a job that was queued': [false, (pool) => pool.job()],
  };
  for (const [title, [refused, change]] of Object.entries(changes)) {
    const pool = await open(t);
    const job = await pool.job({ min: 1 });
    const { version, snapshot } = await pool.store.readSnapshot('default', 0);
    const decision = place(snapshot);
    await change(pool, job);
    const done = await pool.store.applyDecision('default', version, decision, {
      claim_ms: LEASE_MS,
      waiting: [],
    });
    t.equal(done, !refused, title);
  }
});

t.test('the demand of a job is that of its current record', async (t) => {
  const pool = await open(t, { a: 4 });
  const job = await pool.job({ min: 1, ranks: 1 });
  await pool.store.requestResize(job.id, 3);
  t.same(await pool.placements(job), { a: 3 });
  await pool.store.releaseAttempt(job.id, executionAt(job.id, 1), { to: 'paused' });
  await pool.store.resumeJob(job.id, { ranks: 2 });
  t.same(await pool.placements(job), { a: 2 }, 'resuming may change the number of ranks');
  await pool.store.releaseAttempt(job.id, executionAt(job.id, 2), { to: 'queued' });
  t.same(await pool.placements(job), { a: 2 });
});

t.test('slots are held exactly as long as the lease', async (t) => {
  const pool = await open(t);
  const ends: Record<string, (job: Job) => Promise<unknown>> = {
    finished: (job) => pool.store.finishJob(job.id, executionAt(job.id, 1), 'failed'),
    queued: (job) => pool.store.releaseAttempt(job.id, executionAt(job.id, 1), { to: 'queued' }),
    paused: (job) => pool.store.releaseAttempt(job.id, executionAt(job.id, 1), { to: 'paused' }),
  };
  for (const [name, end] of Object.entries(ends)) {
    const job = await pool.job({ min: 2 });
    t.same(await pool.placements(job), { a: 2 });
    await end(job);
    t.same(await pool.used(), { a: 0 }, name);
    if (name !== 'finished') await pool.store.requestCancel(job.id);
  }
  const lost = await pool.job({ min: 2 });
  t.ok(await pool.claim(lost, 20));
  await sleep(25);
  t.same(await pool.used(), { a: 0 }, 'slots of a killed worker');
  t.same(await pool.store.requeueAbandoned(0), [lost.id]);
  t.match(await pool.store.getJob(lost.id), { state: 'queued', reason: 'heartbeat_lost', attempt: 2 });
  t.same(await pool.placements(lost), { a: 2 });
});

t.test(
  'workers that could not connect to each other are not allocated to the job together, for a while',
  async (t) => {
    const pool = await open(t, { a: 2, b: 2, c: 2 });
    const job = await pool.job({ min: 4 });
    t.same(await pool.placements(job), { a: 2, b: 2 });
    const avoid = { pair: ['a', 'b'] as const, ms: HOUR_MS };
    await pool.store.releaseAttempt(job.id, executionAt(job.id, 1), {
      to: 'queued',
      reason: 'node_lost',
      avoid,
    });
    const ofPool = async () =>
      (await pool.store.listWorkers()).map(({ id, avoided }) => [
        id,
        avoided.map(({ worker_id, job_id }) => [worker_id, job_id]),
      ]);
    t.same(await ofPool(), [
      ['a', [['b', job.id]]],
      ['b', [['a', job.id]]],
      ['c', []],
    ]);
    t.same(await pool.placements(job), { a: 2, c: 2 });
    await pool.store.releaseAttempt(job.id, executionAt(job.id, 2), {
      to: 'queued',
      reason: 'node_lost',
      avoid: { pair: ['a', 'c'], ms: HOUR_MS },
    });
    t.same(
      await pool.placements(job),
      { b: 2, c: 2 },
      'the worker without a connection to another is left out',
    );
    await pool.store.releaseAttempt(job.id, executionAt(job.id, 3), {
      to: 'queued',
      reason: 'node_lost',
      avoid: { pair: ['b', 'c'], ms: 1 },
    });
    await sleep(5);
    t.same(await pool.placements(job), { b: 2, c: 2 }, 'the time has passed');
    t.same(
      await ofPool(),
      [
        [
          'a',
          [
            ['b', job.id],
            ['c', job.id],
          ],
        ],
        ['b', [['a', job.id]]],
        ['c', [['a', job.id]]],
      ],
      'it is removed from the list, too',
    );
  },
);

t.test('GPUs have enough memory for the job, according to the record', async (t) => {
  const pool = await open(t, {});
  const gpus = (id: string, sizes: number[]) =>
    pool.announce(id, sizes.length, {
      numerics: 'cuda-sm90/1',
      gpus: sizes.map((size, i) => testGpu(`${id}-${i}`, { memory_bytes: size * GIB })),
    });
  await gpus('small', [16, 16]);
  const job = await pool.job({ min: 1, ranks: 2 });
  const key = pool.key('pool:default:waiting-jobs');
  const demand = JSON.parse((await pool.redis.hget(key, job.id)) ?? '');
  t.equal(JSON.parse(demand.gpu_bytes).length, 8, 'the memory of a rank is known from the beginning');
  const sizes = JSON.stringify([
    [1, 60 * GIB],
    [2, 30 * GIB],
  ]);
  await pool.redis.hset(key, job.id, JSON.stringify({ ...demand, gpu_bytes: sizes }));
  t.equal((await pool.decide()).waiting.get(job.id), 'workers');
  await gpus('large', [40, 40]);
  t.same(await pool.placements(job), { large: 2 });
});

t.test('the scheduler is notified of every change that may let a job begin', async (t) => {
  const pool = await open(t);
  const reasons: (string | null)[] = [];
  const unwatch = await pool.store.watchPools((name) => reasons.push(name));
  t.teardown(unwatch);
  const changes: Record<string, () => Promise<unknown>> = {};
  const [first, second] = [await pool.job({ min: 2 }), await pool.job({ min: 1, ranks: 1 })];
  await pool.placements(first);
  changes.queued = () => pool.job();
  changes.released = () => pool.store.releaseAttempt(first.id, executionAt(first.id, 1), { to: 'paused' });
  changes.resumed = () => pool.store.resumeJob(first.id);
  changes.joined = () => pool.announce('b', 1);
  changes.resized = () => pool.store.requestResize(second.id, 2);
  changes.cancelled = () => pool.store.requestCancel(second.id);
  changes.left = () => pool.store.withdrawWorker('b');
  for (const [title, change] of Object.entries(changes)) {
    reasons.length = 0;
    await change();
    while (reasons.length === 0) await new Promise((done) => setImmediate(done));
    t.ok(
      reasons.every((name) => name === 'default'),
      title,
    );
  }
});

t.test('workers that are gone are listed until their queues were removed', async (t) => {
  const pool = await open(t, { a: 1, b: 1, c: 1 });
  await pool.store.withdrawWorker('a');
  await pool.redis.zadd(pool.key('pool:default:workers'), '1', 'b');
  await pool.store.readSnapshot('default', 0);
  t.same((await pool.store.removedWorkers()).sort(), ['a', 'b']);
  await pool.announce('b', 1);
  t.same(await pool.store.removedWorkers(), ['a'], 'a worker that returns is not gone');
  await pool.store.forgetRemovedWorkers(['a']);
  t.same(await pool.store.removedWorkers(), []);
});
