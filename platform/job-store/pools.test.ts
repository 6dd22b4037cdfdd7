/** Who offers slots, and how a claim gets its places: all of them or none, and never for longer than its lease. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import type { Job, JobSpec } from '../../contracts/index.js';
import { createTestJob } from '../testing/jobs.js';
import { startTestRedis } from '../testing/redis.js';
import { testGpu, testWorker } from '../testing/workers.js';
import { type ClaimResult, type JobStorePort, openJobStore, type Place } from './index.js';

const LEASE_MS = 60_000;
const server = await startTestRedis();
t.teardown(() => server.stop());

/** A store and its workers, by name and slots. */
async function pool(t: Test, workers: Record<string, number>): Promise<JobStorePort> {
  const store = await openJobStore({ url: server.url, prefix: `{${ulid()}}` });
  t.teardown(() => store.close());
  for (const [id, slots] of Object.entries(workers))
    await store.announceWorker(testWorker(id, slots), LEASE_MS);
  return store;
}

const ranks = (min: number, preferred: number, more: Partial<JobSpec> = {}): Partial<JobSpec> => ({
  resources: { ranks: { min, preferred } },
  train: { steps: 100, global_batch_size: 32, micro_batch_size: 4 },
  ...more,
});

interface ClaimOptions {
  spread?: boolean;
  lease_ms?: number;
}

function claim(
  store: JobStorePort,
  job: Job,
  worker: string,
  options: ClaimOptions = {},
): Promise<ClaimResult> {
  const { spread = false, lease_ms = LEASE_MS } = options;
  return store.claimAttempt(job.id, job.attempt, worker, lease_ms, { spec: job.spec, spread });
}

/** What the claim got, as `worker: slots`; null when it has to wait. */
async function places(...args: Parameters<typeof claim>): Promise<Record<string, number> | null> {
  const result = await claim(...args);
  if (result.granted) return byWorker(result.places);
  if (result.code !== 'waiting_capacity') throw new Error(`refused: ${result.code}`);
  return null;
}

const byWorker = (granted: readonly Place[]) =>
  Object.fromEntries(granted.map(({ worker_id, slots }) => [worker_id, slots]));

const used = async (store: JobStorePort) =>
  Object.fromEntries((await store.listWorkers()).map(({ id, used_slots }) => [id, used_slots]));

t.test('a worker is known from its announcement until its time is up or it leaves', async (t) => {
  const store = await pool(t, { a: 4 });
  await store.announceWorker(testWorker('b', 2, { pool: 'other', draining: true }), LEASE_MS);
  await store.announceWorker(testWorker('c', 1), 1);
  await sleep(5);
  t.match(await store.listWorkers(), [
    { id: 'a', pool: 'default', slots: 4, used_slots: 0, draining: false, address: '127.0.0.1' },
    { id: 'b', pool: 'other', slots: 2, draining: true },
  ]);
  t.match(await store.listWorkers('other'), [{ id: 'b' }]);
  t.match(await store.listPools(), [
    { name: 'default', running: 0, waiting: 0 },
    { name: 'other', running: 0, waiting: 0 },
  ]);
  await store.withdrawWorker('b');
  await store.withdrawWorker('b');
  t.strictSame(
    (await store.listPools()).map(({ name }) => name),
    ['default'],
  );
  const [seen] = await store.listWorkers();
  await store.announceWorker(testWorker('a', 3), LEASE_MS);
  t.match(await store.listWorkers(), [{ id: 'a', slots: 3 }]);
  t.ok(seen && !Number.isNaN(Date.parse(seen.last_seen)));
});

t.test('what a worker computes with is known; records of earlier versions have no word of it', async (t) => {
  const store = await pool(t, {});
  const computes = {
    numerics: 'cuda-sm90/1',
    gpus: [testGpu('GPU-1'), testGpu('GPU-2', { problem: 'hot' })],
  };
  await store.announceWorker(testWorker('a', 2, computes), LEASE_MS);
  await store.announceWorker(testWorker('b', 2), LEASE_MS);
  const redis = new Redis({ path: new URL(server.url).pathname });
  t.teardown(() => redis.disconnect());
  const [key = ''] = await redis.keys('*:worker:b');
  const { numerics: _, gpus: __, ...earlier } = testWorker('b', 2);
  await redis.hset(key, 'record', JSON.stringify(earlier));
  await redis.hdel(key, 'numerics', 'gpu_bytes');
  t.match(await store.listWorkers(), [computes, { id: 'b', numerics: null, gpus: [] }]);
});

t.test('ranks are what was asked for or what is free, never less than the minimum', async (t) => {
  const store = await pool(t, { four: 4, two: 2, one: 1 });
  const experts = ranks(2, 4, { model: { preset: 'mixtral-tiny' }, zero: { expert_parallel_size: 2 } });
  const cases: [Partial<JobSpec>, string, number | null][] = [
    [ranks(1, 3), 'four', 3],
    [ranks(1, 3), 'two', 2],
    [ranks(3, 4), 'two', null],
    [ranks(1, 8), 'four', 4],
    [experts, 'four', 4],
    [experts, 'one', null],
  ];
  for (const [spec, worker, slots] of cases) {
    const job = await createTestJob(store, spec);
    t.strictSame(await places(store, job, worker), slots === null ? null : { [worker]: slots });
    if (slots === null) await store.requestCancel(job.id);
    else await store.finishJob(job.id, 1, 'failed');
  }
  const three = await pool(t, { three: 3 });
  t.strictSame(await places(three, await createTestJob(three, experts), 'three'), { three: 2 }, 'whole sets');
  const few = await pool(t, { a: 4 });
  const resumed = await createTestJob(few, ranks(2, 4));
  await few.requestPause(resumed.id);
  const fewer = await few.resumeJob(resumed.id, { ranks: 1 });
  t.strictSame(await places(few, fewer, 'a'), { a: 1 }, 'a person may resume on fewer');
});

t.test('there are no more ranks than leaves', async (t) => {
  const store = await pool(t, { a: 8 });
  const train = { steps: 10, global_batch_size: 8, micro_batch_size: 4 };
  const job = await createTestJob(store, { train, resources: { ranks: { preferred: 2 } } });
  await store.requestPause(job.id);
  t.strictSame(await places(store, await store.resumeJob(job.id, { ranks: 8 }), 'a'), { a: 2 });
});

t.test('a job gets all that it needs or nothing, and does not hold what it can not use', async (t) => {
  const store = await pool(t, { a: 4 });
  const three = await createTestJob(store, ranks(3, 3));
  t.strictSame(await places(store, three, 'a'), { a: 3 });
  const two = await createTestJob(store, ranks(2, 2));
  t.equal(await places(store, two, 'a'), null);
  t.match(await store.getJob(two.id), { state: 'queued', reason: 'waiting_capacity', epoch: 0 });
  t.strictSame(await used(store), { a: 3 });
  t.match(await store.listPools(), [{ running: 1, waiting: 1 }]);
  const one = await createTestJob(store, ranks(1, 1));
  t.strictSame(await places(store, one, 'a'), { a: 1 }, 'a small one passes what does not fit');
  await store.finishJob(three.id, 1, 'failed');
  t.strictSame(await places(store, two, 'a'), { a: 2 });
  t.match(await store.listPools(), [{ running: 2, waiting: 0 }]);
});

t.test('with several workers, the one that claims has some of the places, and they come first', async (t) => {
  const store = await pool(t, { a: 2, b: 4, c: 1 });
  const job = await createTestJob(store, ranks(5, 6));
  t.equal(await places(store, job, 'a'), null, 'on one worker alone it has no room');
  const granted = await claim(store, job, 'c', { spread: true });
  t.strictSame(granted.granted && granted.places, [
    { worker_id: 'c', slots: 1 },
    { worker_id: 'b', slots: 4 },
    { worker_id: 'a', slots: 1 },
  ]);
  t.strictSame(await used(store), { a: 1, b: 4, c: 1 });
  const small = await createTestJob(store, ranks(1, 1));
  t.equal(
    await places(store, small, 'b', { spread: true }),
    null,
    'a worker without a free slot leads nothing',
  );
  t.strictSame(await places(store, small, 'a', { spread: true }), { a: 1 });
});

t.test('nothing begins on a worker that drains, is gone or was never there', async (t) => {
  const store = await pool(t, { a: 1 });
  await store.announceWorker(testWorker('leaving', 4, { draining: true }), LEASE_MS);
  await store.announceWorker(testWorker('gone', 4), 1);
  await sleep(5);
  const job = await createTestJob(store, ranks(1, 4));
  for (const worker of ['leaving', 'gone', 'unknown'])
    t.equal(await places(store, job, worker), null, worker);
  t.strictSame(await places(store, job, 'a', { spread: true }), { a: 1 }, 'nor is any of their slots taken');
});

t.test('places are held exactly as long as the lease', async (t) => {
  const store = await pool(t, { a: 2 });
  const ends: Record<string, (job: Job) => Promise<unknown>> = {
    finished: (job) => store.finishJob(job.id, 1, 'failed'),
    queued: (job) => store.releaseAttempt(job.id, 1, { to: 'queued' }),
    paused: (job) => store.releaseAttempt(job.id, 1, { to: 'paused' }),
  };
  for (const [name, end] of Object.entries(ends)) {
    const job = await createTestJob(store, ranks(2, 2));
    t.strictSame(await places(store, job, 'a'), { a: 2 });
    await end(job);
    t.strictSame(await used(store), { a: 0 }, name);
    if (name !== 'finished') await store.requestCancel(job.id);
  }
  const lost = await createTestJob(store, ranks(2, 2));
  t.strictSame(await places(store, lost, 'a', { lease_ms: 20 }), { a: 2 });
  await sleep(25);
  t.strictSame(await used(store), { a: 0 }, 'of an agent that was killed');
  const next = await createTestJob(store, ranks(2, 2));
  t.strictSame(await places(store, next, 'a'), { a: 2 });
  t.equal(await places(store, lost, 'a'), null, 'the lost one has its turn again');
  t.match(await store.getJob(lost.id), { state: 'provisioning', epoch: 1 });
  await store.finishJob(next.id, 1, 'failed');
  t.strictSame(await places(store, lost, 'a'), { a: 2 });
  t.match(await store.getJob(lost.id), { state: 'recovering', epoch: 2 });
});

t.test('a worker that claims its own job anew keeps its places, and takes no more', async (t) => {
  const store = await pool(t, { a: 3 });
  const job = await createTestJob(store, ranks(2, 2));
  t.strictSame(await places(store, job, 'a'), { a: 2 });
  t.strictSame(await places(store, job, 'a'), { a: 2 });
  t.strictSame(await used(store), { a: 2 });
});

t.test('a job that only has to be ended needs no places', async (t) => {
  const store = await pool(t, { a: 1 });
  const busy = await createTestJob(store, ranks(1, 1));
  await claim(store, busy, 'a');
  for (const [ask, desired] of [
    ['requestPause', 'pause'],
    ['requestCancel', 'cancel'],
  ] as const) {
    const job = await createTestJob(store, ranks(1, 1));
    await store.claimAttempt(job.id, 1, 'gone', 1);
    await store[ask](job.id);
    await sleep(5);
    const result = await claim(store, job, 'a');
    t.match(result, { granted: true, places: [], control: { desired } });
    t.match(await store.listPools(), [{ running: 1, waiting: 0 }]);
  }
});

t.test('a record of an earlier version gets what its document says', async (t) => {
  const store = await pool(t, { a: 4 });
  const job = await createTestJob(store, ranks(3, 4));
  const redis = new Redis({ path: new URL(server.url).pathname });
  t.teardown(() => redis.disconnect());
  const [key = ''] = await redis.keys(`*:job:${job.id}`);
  await redis.hdel(
    key,
    'project',
    'ranks_min',
    'ranks_most',
    'ranks_multiple',
    'places',
    'queued_since',
    'seen_until',
  );
  await redis.zrem(key.replace(/:job:.*/, ':pool:default:waiting'), job.id);
  const other = await createTestJob(store, ranks(2, 2));
  t.strictSame(await places(store, other, 'a'), { a: 2 });
  t.equal(await places(store, job, 'a'), null, 'its minimum is three');
});
