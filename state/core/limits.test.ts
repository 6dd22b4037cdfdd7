import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import t from 'tap';
import type { Execution } from '../../contracts/execution.js';
import { type Job, type JobSpec, REDIS_PREFIX } from '../../contracts/index.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { type JobStore, openJobStore } from '../job-store.js';
import { createTestJob } from '../testing/jobs.js';
import { claimAllocated } from '../testing/pools.js';
import { testWorker } from '../testing/workers.js';

const LEASE_MS = 60_000;
const HOUR_S = 3600;
const MINUTE_MS = 60_000;
const MINUTES_59_MS = 59 * MINUTE_MS;

interface Opened {
  store: JobStore;
  /** Used to move times in Redis into the past instead of waiting. */
  redis: Redis;
}

async function open(t: { teardown(end: () => Promise<void>): void }): Promise<Opened> {
  const server = await startTestRedis();
  const store = await openJobStore({ url: server.url });
  const redis = await connectRedis(server.url, 'commands');
  t.teardown(async () => {
    await store.close();
    await disconnectRedis(redis);
    await server.stop();
  });
  await store.announceWorker(testWorker('w', 4), LEASE_MS);
  return { store, redis };
}

/** Price at which any usage is measurable. */
const PRICE = 3600;

async function claim(store: JobStore, job: Job): Promise<Execution> {
  const claim = await claimAllocated(store, job, LEASE_MS, { price_per_rank_hour: PRICE });
  if (!claim) throw new Error('it waits');
  return claim.execution;
}

/** Renews the lease until the job is asked to stop. */
async function untilAsked(store: JobStore, id: string, execution: Execution): Promise<Job> {
  while ((await store.renewLease(id, execution, LEASE_MS)).desired === 'run') await sleep(5);
  return current(store, id);
}

async function current(store: JobStore, id: string): Promise<Job> {
  const job = await store.getJob(id);
  if (!job) throw new Error('it is gone');
  return job;
}

const create = (store: JobStore, limits: JobSpec['limits']) =>
  createTestJob(store, { ...(limits && { limits }), resources: { ranks: { min: 1, max: 2, preferred: 2 } } });

t.test('slots cost by the server clock, while the lease is valid', async (t) => {
  const { store } = await open(t);
  const job = await create(store, undefined);
  t.same(job.usage, { run_seconds: 0, rank_seconds: 0, cost: 0 });
  const began = Date.now();
  const execution = await claim(store, job);
  await sleep(30);
  await store.releaseAttempt(job.id, execution, { to: 'queued' });
  const { usage } = await current(store, job.id);
  t.ok(usage.run_seconds >= 0.025 && usage.run_seconds <= (Date.now() - began) / 1000 + 0.002);
  t.equal(usage.rank_seconds.toFixed(6), (2 * usage.run_seconds).toFixed(6), 'two slots');
  t.equal(usage.cost.toFixed(6), usage.rank_seconds.toFixed(6), 'at one per second');
  await sleep(20);
  t.same((await current(store, job.id)).usage, usage, 'waiting costs nothing');
  await claim(store, job);
  t.ok(
    (await current(store, job.id)).usage.run_seconds >= usage.run_seconds,
    'and a later attempt adds to it',
  );
});

t.test('a lost worker costs nothing after the end of its lease', async (t) => {
  const { store } = await open(t);
  const job = await create(store, undefined);
  t.ok(await claimAllocated(store, job, 10));
  await sleep(50);
  t.same(await store.requeueAbandoned(0), [job.id]);
  const { run_seconds } = (await current(store, job.id)).usage;
  t.ok(run_seconds > 0 && run_seconds <= 0.01, `${run_seconds} s of a lease of 0.01 s`);
});

for (const onLimit of ['pause', 'cancel'] as const) {
  t.test(`max_cost reached: ${onLimit}`, async (t) => {
    const { store } = await open(t);
    const job = await create(store, { max_cost: 0.02, on_limit: onLimit });
    const execution = await claim(store, job);
    const asked = await untilAsked(store, job.id, execution);
    t.match(asked, { state: onLimit === 'pause' ? 'pausing' : 'cancelling', reason: 'budget_reached' });
    t.ok(asked.usage.cost >= 0.02);
    const ended =
      onLimit === 'pause'
        ? await store.releaseAttempt(job.id, execution, { to: 'paused', reason: 'user_request' })
        : await store.finishJob(job.id, execution, 'cancelled', { reason: 'user_request' });
    t.match(ended, { state: onLimit === 'pause' ? 'paused' : 'cancelled', reason: 'budget_reached' });
  });
}

t.test('resuming a job restores its whole budget', async (t) => {
  const { store, redis } = await open(t);
  const job = await create(store, { max_runtime: HOUR_S });
  const execution = await claim(store, job);
  t.match(await store.renewLease(job.id, execution, LEASE_MS), { desired: 'run' });
  await redis.hincrby(`${REDIS_PREFIX}:job:${job.id}`, 'run_ms', HOUR_S * 1000);
  await untilAsked(store, job.id, execution);
  await store.releaseAttempt(job.id, execution, { to: 'paused' });
  await store.resumeJob(job.id);
  const next = await claim(store, job);
  t.match(await store.renewLease(job.id, next, LEASE_MS), { desired: 'run' });
  t.ok((await current(store, job.id)).usage.run_seconds >= HOUR_S, 'what was used is not forgotten');
});

t.test('a job that waits too long is paused or cancelled; a running job is not', async (t) => {
  const { store, redis } = await open(t);
  // The first job in the queue gets its slots before others wait.
  const running = await create(store, { max_wait: HOUR_S });
  const execution = await claim(store, running);
  const paused = await create(store, { max_wait: HOUR_S });
  const cancelled = await create(store, { max_wait: HOUR_S, on_limit: 'cancel' });
  const unlimited = await create(store, undefined);
  for (const earlierMs of [MINUTES_59_MS, MINUTE_MS]) {
    t.same(await store.expireWaiting(), [], 'not a minute too early');
    for (const { id } of [running, paused, cancelled, unlimited])
      await redis.zadd(`${REDIS_PREFIX}:wait-deadlines`, 'XX', 'INCR', -earlierMs, id);
  }
  t.same((await store.expireWaiting()).sort(), [paused.id, cancelled.id].sort());
  t.same(await store.expireWaiting(), []);
  t.match(await current(store, paused.id), { state: 'paused', reason: 'budget_reached' });
  t.match(await current(store, cancelled.id), { state: 'cancelled', reason: 'budget_reached' });
  t.match(await current(store, unlimited.id), { state: 'queued' });
  t.match(await store.renewLease(running.id, execution, LEASE_MS), { desired: 'run' });
  await store.resumeJob(paused.id);
  t.same(await store.expireWaiting(), [], 'and waits anew when it is resumed');
});
