/** Ranks of one job compute the same bits: its places lie on workers of one group, those with the numerics of its leader. */
import t, { type Test } from 'tap';
import { byWorker, TestPool } from '../testing/pools.js';
import { startTestRedis } from '../testing/redis.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

const SPREAD = { spread: true };

/** Two workers of 2 slots and one of 3; a and b compute alike. */
const twoGroups = (test: Test) =>
  TestPool.open(test, server, { a: 2, b: 2, c: 3 }, { a: 'cpu-avx2/2', b: 'cpu-avx2/2', c: 'cpu-avx512/2' });

t.test('a job gets places on workers with the numerics of its leader only', async (t) => {
  const pool = await twoGroups(t);
  const wide = await pool.job({ min: 1, ranks: 7 });
  t.strictSame(await pool.places(wide, 'a', SPREAD), { a: 2, b: 2 });
  const other = await pool.job({ min: 1, ranks: 7 });
  t.strictSame(await pool.places(other, 'c', SPREAD), { c: 3 });
  t.strictSame(await pool.used(), { a: 2, b: 2, c: 3 });
});

t.test('what needs more than one group has fits nowhere, and holds up nobody', async (t) => {
  const pool = await twoGroups(t);
  const gang = await pool.job({ min: 5, priority: 9 });
  await pool.age(gang, 60);
  for (const worker of ['a', 'c']) t.equal(await pool.places(gang, worker, SPREAD), null, worker);
  t.strictSame(await pool.places(await pool.job({ min: 3 }), 'c', SPREAD), { c: 3 });
  await pool.announce('d', 1, { numerics: 'cpu-avx2/2' });
  t.strictSame(await pool.places(gang, 'b', SPREAD), { b: 2, a: 2, d: 1 });
});

t.test('workers that do not say what decides their bits are a group of their own', async (t) => {
  const pool = await TestPool.open(t, server, { a: 2, b: 2, c: 2 }, { c: 'cpu-avx2/2' });
  t.strictSame(await pool.places(await pool.job({ min: 1, ranks: 6 }), 'a', SPREAD), { a: 2, b: 2 });
});

t.test('for one that waited long only the groups that it could run on are kept', async (t) => {
  const pool = await twoGroups(t);
  const running = await pool.job({ min: 1 });
  t.strictSame(await pool.places(running, 'a', SPREAD), { a: 1 });
  const long = await pool.job({ min: 4 });
  await pool.age(long, 2);
  t.equal(await pool.places(long, 'b', SPREAD), null);
  const small = await pool.job();
  t.equal(await pool.places(small, 'b', SPREAD), null, 'three slots are kept');
  t.strictSame(
    await pool.places(small, 'c', SPREAD),
    { c: 1 },
    'those of the other group are of no use to it',
  );
  await pool.store.finishJob(running.id, 1, 'failed');
  t.strictSame(await pool.places(long, 'b', SPREAD), { b: 2, a: 2 });
});

t.test('what is set aside is set aside in the group that has room', async (t) => {
  const pool = await twoGroups(t);
  const first = await pool.job({ min: 3, priority: 1 });
  const second = await pool.job({ min: 3 });
  t.equal((await pool.places(first, 'gone', SPREAD)) ?? null, null, 'it has its turn from now on');
  t.equal(
    await pool.places(second, 'a', SPREAD),
    null,
    'four slots are more than three: they are for the first',
  );
  t.strictSame(await pool.places(second, 'c', SPREAD), { c: 3 });
  t.strictSame(await pool.places(first, 'a', SPREAD), { a: 2, b: 1 });
});

t.test('only those are asked for room who have places where the job could go', async (t) => {
  const pool = await twoGroups(t);
  const [near, far] = [await pool.job({ min: 1, ranks: 4 }), await pool.job({ min: 1, ranks: 3 })];
  await pool.places(near, 'a', SPREAD);
  await pool.places(far, 'c', SPREAD);
  const next = await pool.job({ min: 2, priority: 1 });
  t.equal(await pool.places(next, 'b', SPREAD), null);
  t.strictSame([await pool.ask(near), await pool.ask(far)], [2, null]);
  const large = await pool.job({ min: 4, priority: 50 });
  t.equal(await pool.places(large, 'c', SPREAD), null);
  t.equal(await pool.ask(far), null, 'three slots would not be enough');
});

t.test('a running job grows in its group, and only those count as waiting who could run there', async (t) => {
  const pool = await twoGroups(t);
  t.strictSame(await pool.places(await pool.job({ min: 2 }), 'b', SPREAD), { b: 2 });
  const job = await pool.job({ min: 1, ranks: 7 });
  t.strictSame(await pool.places(job, 'c', SPREAD), { c: 3 });
  const grow = async () =>
    byWorker((await pool.store.adjustPlaces(job.id, 1, { spread: true, grow: true })) ?? []);
  t.strictSame(await grow(), { c: 3 });
  await pool.announce('d', 1, { numerics: 'cpu-avx512/2' });
  const elsewhere = await pool.job({ min: 5 });
  await pool.announce('e', 1, { numerics: 'cpu-avx2/2' });
  t.equal(await pool.places(elsewhere, 'e', SPREAD), null);
  t.strictSame(await grow(), { c: 3, d: 1 });
});

t.test('places that are gone are replaced in the group, or the job goes back', async (t) => {
  const pool = await twoGroups(t);
  const job = await pool.job({ min: 3 });
  t.strictSame(await pool.places(job, 'a', SPREAD), { a: 2, b: 1 });
  const adjust = () => pool.store.adjustPlaces(job.id, 1, { spread: true });
  await pool.store.withdrawWorker('b');
  t.equal(await adjust(), null, 'c has three, but computes other bits');
  await pool.announce('d', 1, { numerics: 'cpu-avx2/2' });
  t.strictSame(byWorker((await adjust()) ?? []), { a: 2, d: 1 });
  await pool.announce('d', 1, { numerics: 'cpu-avx512/2' });
  t.equal(await adjust(), null, 'a worker that computes other bits now');
});
