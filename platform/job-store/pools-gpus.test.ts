/** On GPUs a job gets no fewer ranks than its parts fit on, and its places lie on GPUs that are large enough. */
import t, { type Test } from 'tap';
import type { Job } from '../../contracts/index.js';
import { byWorker, TestPool } from '../testing/pools.js';
import { startTestRedis } from '../testing/redis.js';
import { testGpu } from '../testing/workers.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

const SPREAD = { spread: true };
const GIB = 2 ** 30;

/** Each worker's GPUs, in GiB. */
async function gpuPool(t: Test, workers: Record<string, number[]>): Promise<TestPool> {
  const pool = await TestPool.open(t, server, {});
  for (const [id, sizes] of Object.entries(workers)) await announce(pool, id, sizes);
  return pool;
}

function announce(pool: TestPool, id: string, sizes: readonly number[]): Promise<void> {
  const gpus = sizes.map((size, i) => testGpu(`${id}-${i}`, { memory_bytes: size * GIB }));
  return pool.announce(id, sizes.length, { numerics: 'cuda-sm90/1', gpus });
}

/** As if a rank of the job needed so many GiB on so many ranks. */
async function needs(pool: TestPool, job: Job, sizes: readonly [ranks: number, gib: number][]): Promise<Job> {
  const text = JSON.stringify(sizes.map(([ranks, gib]) => [ranks, gib * GIB]));
  await pool.redis.hset(pool.key(`job:${job.id}`), 'gpu_bytes', text);
  return job;
}

const HALVES: [number, number][] = [
  [1, 80],
  [2, 40],
  [3, 27],
  [4, 20],
];

t.test('what a rank needs on a GPU is in the record from the beginning', async (t) => {
  const pool = await gpuPool(t, { a: [80, 80] });
  const job = await pool.job({ ranks: 2 });
  const text = (await pool.redis.hget(pool.key(`job:${job.id}`), 'gpu_bytes')) ?? '';
  const sizes = JSON.parse(text) as [number, number][];
  t.strictSame(
    sizes.map(([size]) => size),
    [1, 2, 3, 4, 5, 6, 7, 8],
  );
  t.strictSame(await pool.places(job, 'a'), { a: 2 });
});

t.test('a job gets as many ranks as it fits on, or waits', async (t) => {
  const pool = await gpuPool(t, { a: [24, 24, 24, 24, 24, 24] });
  const [first, second] = [await pool.job({ min: 1, ranks: 4 }), await pool.job({ min: 1, ranks: 4 })];
  for (const job of [first, second]) await needs(pool, job, HALVES);
  t.strictSame(await pool.places(first, 'a'), { a: 4 });
  t.match(await pool.claim(second, 'a'), { granted: false, waiting_for: 'slots' }, 'two are too few');
  const small = await needs(pool, await pool.job({ min: 1, ranks: 4 }), [[1, 20]]);
  t.strictSame(await pool.places(small, 'a'), { a: 2 }, 'what the second can not use');
  t.equal(await pool.ask(first), null);
});

t.test('one that fits on none of the GPUs waits for others', async (t) => {
  const pool = await gpuPool(t, { a: [16, 16, 16, 16] });
  const job = await needs(pool, await pool.job({ min: 1, ranks: 4 }), HALVES);
  t.match(await pool.claim(job, 'a', SPREAD), { granted: false, waiting_for: 'workers' });
  await pool.age(job, 5);
  t.strictSame(await pool.places(await pool.job(), 'a'), { a: 1 }, 'and holds up nobody');
  await pool.announce('cpu', 1);
  t.strictSame(await pool.places(job, 'cpu'), { cpu: 1 }, 'a CPU has what memory it has');
});

t.test('places lie on the GPUs that are large enough', async (t) => {
  const pool = await gpuPool(t, { a: [24, 24], b: [40, 40], c: [80] });
  const job = await needs(pool, await pool.job({ min: 1, ranks: 3 }), HALVES.slice(0, 3));
  t.equal(await pool.places(job, 'a', SPREAD), null, 'not even three ranks fit there');
  t.strictSame(await pool.places(job, 'b', SPREAD), { b: 2, c: 1 });
  const alone = await needs(pool, await pool.job({ min: 1, ranks: 3 }), HALVES);
  await pool.store.finishJob(job.id, 1, 'failed');
  t.strictSame(await pool.places(alone, 'c'), { c: 1 }, 'one on the large GPU');
});

t.test('nobody is asked for room that would not be enough, nor to go below what it fits on', async (t) => {
  const pool = await gpuPool(t, { a: [40, 40, 40, 40] });
  const running = await needs(pool, await pool.job({ min: 1, ranks: 4 }), HALVES);
  t.strictSame(await pool.places(running, 'a'), { a: 4 });
  const next = await needs(pool, await pool.job({ min: 1, ranks: 2, priority: 1 }), HALVES);
  t.equal(await pool.places(next, 'a'), null);
  t.equal(await pool.ask(running), 2, 'both go on on two');
  t.strictSame(byWorker((await pool.store.adjustPlaces(running.id, 1, { spread: true })) ?? []), { a: 2 });
  t.strictSame(await pool.places(next, 'a'), { a: 2 });
  const third = await pool.job({ min: 1, priority: 5 });
  t.equal(await pool.places(third, 'a'), null);
  t.same(
    [await pool.ask(running), await pool.ask(next)],
    [0, null],
    'one rank less fits nowhere: one leaves',
  );
});

t.test('a running job grows and is moved onto GPUs that are large enough only', async (t) => {
  const pool = await gpuPool(t, { a: [40], b: [40], c: [16, 16] });
  const job = await needs(pool, await pool.job({ min: 1, ranks: 4 }), HALVES);
  t.strictSame(await pool.places(job, 'a', SPREAD), { a: 1, b: 1 });
  const adjust = async (grow: boolean) => pool.store.adjustPlaces(job.id, 1, { spread: true, grow });
  t.strictSame(byWorker((await adjust(true)) ?? []), { a: 1, b: 1 });
  await announce(pool, 'd', [24, 24]);
  t.strictSame(byWorker((await adjust(true)) ?? []), { a: 1, b: 1, d: 2 });
  await pool.store.withdrawWorker('b');
  t.equal(await adjust(false), null, 'three would not fit on those of d, one not on that of a');
  await announce(pool, 'e', [40]);
  t.strictSame(byWorker((await adjust(false)) ?? []), { a: 1, d: 2, e: 1 });
});

t.test('an autoscaler learns of the ranks that a job needs on the GPUs that are there', async (t) => {
  const pool = await gpuPool(t, { a: [24] });
  await needs(pool, await pool.job({ min: 1, ranks: 4 }), HALVES);
  const read = async () => (await pool.store.readDemand([{ name: 'default', ranks: 100 }]))[0]?.jobs;
  t.match(await read(), [{ need: 4, want: 4 }]);
  await announce(pool, 'b', [80]);
  t.match(await read(), [{ need: 1, want: 4 }]);
});
