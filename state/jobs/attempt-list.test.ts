/** The list of a job's attempts: beginning and end of each, for every cause. */
import t from 'tap';
import { startTestRedis } from '../../platform/testing/redis.js';
import { executionAt } from '../testing/executions.js';
import { TestPool } from '../testing/pools.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

t.test('each epoch states its worker, its number of ranks and its end', async (t) => {
  const pool = await TestPool.open(t, server, { a: 2, b: 2 });
  const { store } = pool;
  const job = await pool.job({ ranks: 3 });
  t.strictSame(await store.listAttempts(job.id), { data: [], next_cursor: null });

  t.strictSame(await pool.placements(job), { a: 2, b: 1 });
  const first = (await store.getJob(job.id))?.epoch ?? 0;
  const execution = executionAt(job.id, first);
  await store.transition(job.id, execution, 'starting');
  await store.transition(job.id, execution, 'running', { patch: { world_size: 3 } });
  const data = { code: 'rank_lost', message: 'gone', rank: 1, step: 7, output: [] };
  await store.appendEvent(job.id, execution, { type: 'rank.lost', data, root_cause: true });
  await store.releaseAttempt(job.id, execution, { to: 'queued', reason: 'rank_lost' });
  const [released] = (await store.listAttempts(job.id)).data;
  t.match(released, {
    epoch: first,
    attempt: 1,
    generations: [{ world_size: 3 }],
    outcome: 'requeued',
    reason: 'rank_lost',
  });
  t.strictSame(released?.root_cause, data, 'an empty list stays a list');
  t.strictSame(released?.workers, ['a', 'b']);
  t.ok(released?.ended_at);

  const claim = async (attempt: number, worker: string, leaseMs = 60_000) => {
    const granted = await store.claimAttempt(job.id, attempt, worker, leaseMs);
    if (!granted.granted) throw new Error(granted.code);
    return granted.job.epoch;
  };
  const again = await claim(2, 'a');
  const taken = await claim(2, 'a');
  t.equal(taken, again + 1);
  await store.requestPause(job.id);
  await store.releaseAttempt(job.id, executionAt(job.id, taken), { to: 'paused', reason: 'user_request' });
  await store.resumeJob(job.id);
  await claim(3, 'b', 1);
  while ((await store.requeueAbandoned(0)).length === 0);
  const last = await claim(4, 'b');
  await store.finishJob(job.id, executionAt(job.id, last), 'failed', { reason: 'internal_error' });
  const outcomes = (await store.listAttempts(job.id)).data.map(({ epoch, outcome, reason }) => [
    epoch,
    outcome,
    reason,
  ]);
  t.strictSame(outcomes, [
    [last, 'failed', 'internal_error'],
    [last - 1, 'lost', 'heartbeat_lost'],
    [taken, 'paused', 'user_request'],
    [again, 'lost', 'worker_lost'],
    [first, 'requeued', 'rank_lost'],
  ]);
  const page = await store.listAttempts(job.id, { limit: 2, after: String(last) });
  t.match(page, { data: [{ epoch: last - 1 }, { epoch: taken }], next_cursor: String(taken) });
});

t.test('each number of ranks of an attempt is a generation, which ends with it at the latest', async (t) => {
  const pool = await TestPool.open(t, server, { a: 4 });
  const { store } = pool;
  const job = await pool.job({ ranks: 3 });
  await pool.placements(job);
  const execution = executionAt(job.id, (await store.getJob(job.id))?.epoch ?? 0);
  const train = async (worldSize: number) => {
    await store.transition(job.id, execution, 'starting');
    await store.transition(job.id, execution, 'running', { patch: { world_size: worldSize } });
  };
  const attempt = async () => (await store.listAttempts(job.id)).data[0];
  const sizes = async () => (await attempt())?.generations.map(({ world_size }) => world_size);

  await store.transition(job.id, execution, 'starting');
  t.match(await attempt(), { generations: [] });
  await train(3);
  const [first] = (await attempt())?.generations ?? [];
  await store.transition(job.id, execution, 'running', { patch: { world_size: 3 } });
  t.strictSame((await attempt())?.generations, [first], 'a repeated call changes nothing');
  t.match(first, { world_size: 3, started_at: String, ended_at: null });

  await store.transition(job.id, execution, 'recovering', {
    reason: 'rank_lost',
    patch: { world_size: null },
  });
  const ended = (await attempt())?.generations[0]?.ended_at ?? '';
  t.ok(ended >= (first?.started_at ?? '-'), 'it ends with its ranks');
  await train(3);
  await train(2);
  t.strictSame(await sizes(), [3, 3, 2]);
  t.equal((await attempt())?.generations[0]?.ended_at, ended);
  const [, second, third] = (await attempt())?.generations ?? [];
  t.ok((second?.ended_at ?? '-') <= (third?.started_at ?? ''), 'a resize ends the one before');
  t.equal(third?.ended_at, null);

  await store.requestPause(job.id);
  t.match((await attempt())?.generations[2], { ended_at: null }, 'it trains until it is paused');
  await store.releaseAttempt(job.id, execution, { to: 'paused', reason: 'user_request' });
  const next = await attempt();
  t.match(next, { generations: [{}, {}, { ended_at: next?.ended_at }] });

  const other = await pool.job({ ranks: 3 });
  await pool.placements(other);
  const at = executionAt(other.id, (await store.getJob(other.id))?.epoch ?? 0);
  await store.transition(other.id, at, 'starting');
  for (let i = 1; i <= 103; i += 1)
    await store.transition(other.id, at, 'running', { patch: { world_size: 1 + (i % 2) } });
  const kept = (await store.listAttempts(other.id)).data[0]?.generations ?? [];
  t.equal(kept.length, 100, 'the newest are kept');
  t.match(kept.at(-1), { world_size: 2, ended_at: null });
  t.ok(kept.slice(0, -1).every(({ ended_at }, i) => ended_at === kept[i + 1]?.started_at));
});

t.test('a new priority applies to a waiting job', async (t) => {
  const pool = await TestPool.open(t, server, { a: 1 });
  const { store } = pool;
  const [first, second] = [await pool.job(), await pool.job()];
  t.ok(first && second);
  const before = await store.getJob(second.id);
  if (!before) throw new Error('no job');
  const update = { before, requested_ranks: before.requested_ranks, changed: ['priority'] };
  await store.updateJob({ ...update, spec: { ...before.spec, priority: 9 } });
  t.equal(await pool.placements(first), null);
  t.strictSame(await pool.placements(second), { a: 1 });
  await t.rejects(store.updateJob({ ...update, spec: before.spec }), { code: 'version_mismatch' });
});

t.test('a new limit of waiting applies at once', async (t) => {
  const pool = await TestPool.open(t, server, {});
  const { store } = pool;
  const job = await pool.job();
  const before = await store.getJob(job.id);
  if (!before) throw new Error('no job');
  await pool.age(job, 2);
  const limits = { on_limit: 'pause' as const, max_wait: 60 };
  await store.updateJob({
    before,
    spec: { ...before.spec, limits },
    requested_ranks: 1,
    changed: ['limits'],
  });
  t.strictSame(await store.expireWaiting(), [job.id]);
});
