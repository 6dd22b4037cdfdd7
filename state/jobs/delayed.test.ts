/** Delayed attempts: they take no turn and are not lost. Limits of preemptions. */
import t, { type Test } from 'tap';
import type { Job } from '../../contracts/index.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { executionAt } from '../testing/executions.js';
import { createTestJob } from '../testing/jobs.js';
import { TestPool } from '../testing/pools.js';
import type { ReleaseOptions } from './attempts.js';

const HOUR_MS = 3_600_000;
const server = await startTestRedis();
t.teardown(() => server.stop());

const open = (t: Test) => TestPool.open(t, server, { a: 2 });

async function handBack(pool: TestPool, job: Job, options: Partial<ReleaseOptions> = {}): Promise<Job> {
  const claim = await pool.claim(job);
  if (!claim) throw new Error('it waits');
  return pool.store.releaseAttempt(job.id, claim.execution, {
    to: 'queued',
    reason: 'rank_lost',
    ...options,
  });
}

const waiting = async (pool: TestPool) => (await pool.store.listPools())[0]?.waiting;

/** Lets the delay of a job expire, `more_ms` ago. */
async function due(pool: TestPool, job: Job, moreMs = 0): Promise<number> {
  const delayed = pool.key('pool:default:delayed');
  const past = Number(await pool.redis.zscore(delayed, job.id)) - HOUR_MS - moreMs;
  await pool.redis.zadd(delayed, String(past), job.id);
  return past;
}

t.test('a delayed job takes no turn, but counts as waiting', async (t) => {
  const pool = await open(t);
  const first = await pool.job({ min: 2, priority: 100 });
  t.match(await handBack(pool, first, { delay_ms: HOUR_MS }), { state: 'queued', reason: 'rank_lost' });
  t.equal(await waiting(pool), 1, 'a pool without workers needs one');
  const second = await pool.job({ min: 2, priority: -100 });
  t.same(await pool.placements(second), { a: 2 });
  await due(pool, first);
  t.equal(await pool.placements(first), null, 'it has its turn now');
  const third = await pool.job({ min: 2, priority: 99 });
  const { epoch } = (await pool.store.getJob(second.id)) ?? second;
  await pool.store.releaseAttempt(second.id, executionAt(second.id, epoch), { to: 'queued' });
  t.same(await pool.placements(first), { a: 2 });
  t.equal(await pool.placements(third), null);
  t.equal(await waiting(pool), 2);
});

t.test('its wait begins when it is due', async (t) => {
  const pool = await open(t);
  const job = await pool.job({ min: 2 });
  await handBack(pool, job, { delay_ms: HOUR_MS });
  await pool.claim(await pool.job({ min: 2 }));
  const past = await due(pool, job, 30_000);
  t.equal(await pool.placements(job), null);
  t.equal(Number(await pool.redis.hget(pool.key(`job:${job.id}`), 'queued_since')), past);
});

for (const action of ['requestPause', 'requestCancel'] as const) {
  t.test(`${action} takes effect while a job is delayed`, async (t) => {
    const pool = await open(t);
    const job = await pool.job();
    await handBack(pool, job, { delay_ms: HOUR_MS });
    const stopped = await pool.store[action](job.id);
    t.equal(stopped.state, action === 'requestPause' ? 'paused' : 'cancelled');
    t.equal(await waiting(pool), 0);
    if (action === 'requestCancel') return;
    await pool.store.resumeJob(job.id);
    t.same(await pool.placements(job), { a: 1 }, 'resuming ends the delay');
  });
}

t.test('a pending request to stop is carried out at release without delay', async (t) => {
  const pool = await open(t);
  const [pausing, cancelling] = [await pool.job(), await pool.job()];
  for (const job of [pausing, cancelling]) await pool.claim(job);
  await pool.store.requestPause(pausing.id);
  await pool.store.requestCancel(cancelling.id);
  const release = { to: 'queued', delay_ms: HOUR_MS } as const;
  t.equal((await pool.store.releaseAttempt(pausing.id, executionAt(pausing.id, 1), release)).state, 'paused');
  t.equal(
    (await pool.store.releaseAttempt(cancelling.id, executionAt(cancelling.id, 1), release)).state,
    'cancelled',
  );
});

t.test('a delayed job is not abandoned', async (t) => {
  const pool = await open(t);
  const job = await pool.job();
  await handBack(pool, job, { delay_ms: HOUR_MS });
  t.same(await pool.store.requeueAbandoned(0), []);
  t.equal(await waiting(pool), 1);
});

t.test('a release that is repeated after a lost reply makes one attempt', async (t) => {
  const pool = await open(t);
  const job = await pool.job();
  await handBack(pool, job, { delay_ms: HOUR_MS, preempted: true });
  const again = await pool.store.releaseAttempt(job.id, executionAt(job.id, 1), {
    to: 'queued',
    delay_ms: 1,
    preempted: true,
  });
  t.equal(again.attempt, 2);
  t.equal(await pool.redis.hget(pool.key(`job:${job.id}`), 'preemptions'), '1');
});

t.test('the maximum wait begins when the job is due, with or without a worker', async (t) => {
  const pool = await open(t);
  const job = await createTestJob(pool.store, { limits: { max_wait: 60 } });
  await handBack(pool, job, { delay_ms: HOUR_MS });
  const key = pool.key('wait-deadlines');
  const [due, limit] = await Promise.all([
    pool.redis.zscore(pool.key('pool:default:delayed'), job.id),
    pool.redis.zscore(key, job.id),
  ]);
  t.equal(Number(limit), Number(due) + 60_000);
  await pool.redis.zadd(key, '1', job.id);
  t.same(await pool.store.expireWaiting(), [job.id]);
  t.match(await pool.store.getJob(job.id), { state: 'paused', reason: 'budget_reached' });
});

t.test('a job that exceeds its limit of preemptions is paused; resuming resets the count', async (t) => {
  const pool = await open(t);
  const job = await createTestJob(pool.store, { retry: { preemptions: 1 } });
  const preempted = { reason: 'preempted', preempted: true };
  t.match(await handBack(pool, job, preempted), { state: 'queued', reason: 'preempted' });
  t.match(await handBack(pool, job), { state: 'queued' }, 'an error does not count');
  const paused = await handBack(pool, job, preempted);
  t.match(paused, { state: 'paused', reason: 'preemption_limit' });
  t.match(paused.state_history.at(-2), { state: 'pausing' });
  t.equal(await waiting(pool), 0);
  await pool.store.resumeJob(job.id);
  t.match(await handBack(pool, job, preempted), { state: 'queued' });
  t.match(await handBack(pool, job, preempted), { state: 'paused' });
  const free = await pool.job();
  for (let i = 0; i < 5; i++) t.match(await handBack(pool, free, preempted), { state: 'queued' }, 'no limit');
});
