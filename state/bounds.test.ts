/** Bounds of the data that Redis keeps per job and pool. */
import { Redis } from 'ioredis';
import t from 'tap';
import { ulid } from 'ulid';
import type { Checkpoint, Job } from '../contracts/index.js';
import { startTestRedis } from '../platform/testing/redis.js';
import { openJobStore } from './job-store.js';
import { createTestJob } from './testing/jobs.js';
import { TestPool } from './testing/pools.js';
import { testWorker } from './testing/workers.js';

const LEASE_MS = 60_000;
const server = await startTestRedis();
const redis = new Redis({ path: new URL(server.url).pathname });
const store = await openJobStore({ url: server.url, prefix: '{bounds}' });
t.teardown(async () => {
  redis.disconnect();
  await store.close();
  await server.stop();
});

async function held() {
  const { id } = await createTestJob(store);
  const claim = await store.claimAttempt(id, 1, 'w', LEASE_MS);
  if (!claim.granted) throw new Error(claim.code);
  return { id, execution: claim.execution, key: (part: string) => `{bounds}:job:${id}:${part}` };
}

t.test('the newest states are kept, and readers see each change', async (t) => {
  const { id, execution } = await held();
  for (let n = 0; n < 120; n += 1) {
    await store.transition(id, execution, 'starting', { reason: `${n}` });
    t.match((await store.getJob(id))?.state_history.at(-1), { state: 'starting', reason: `${n}` });
    await store.transition(id, execution, 'running');
  }
  t.equal((await store.getJob(id))?.state_history.length, 200);
});

t.test('the newest events are kept', async (t) => {
  const { id, execution, key } = await held();
  for (let n = 0; n < 100; n += 1)
    await Promise.all(
      Array.from({ length: 120 }, () => store.appendEvent(id, execution, { type: 'test.event' })),
    );
  const kept = await redis.xlen(key('events'));
  t.ok(kept >= 10_000 && kept < 10_500, `${kept} events`);
  const [newest] = await redis.xrevrange(key('events'), '+', '-', 'COUNT', 1);
  const last = Number(newest?.[0].split('-')[0]);
  t.ok(last >= 12_000, `the newest is number ${last}`);
});

t.test('the jobs of the newest removed checkpoints are remembered', async (t) => {
  const { id, execution, key } = await held();
  const removed = '{bounds}:removed-checkpoints';
  const old = (n: number) => `ckpt_${String(n).padStart(26, '0')}`;
  for (let at = 0; at < 100_000; at += 10_000)
    await redis.zadd(
      removed,
      ...Array.from({ length: 10_000 }, (_, n) => ['0', `${old(at + n)} job_x`]).flat(),
    );
  const checkpoint: Checkpoint = {
    id: `ckpt_${ulid()}`,
    job_id: id,
    step: 1,
    world_size: 1,
    state_digest: '0'.repeat(32),
    bytes: 100,
    committed_at: '',
    pinned: false,
    damaged: false,
    prefix: 'p',
  };
  await store.commitCheckpoint(id, execution, checkpoint);
  t.equal(await redis.hlen('{bounds}:checkpoint-jobs'), 1);
  t.same(await store.findCheckpoint(old(0)), { job_id: 'job_x', checkpoint: null });
  t.equal(await store.findCheckpoint(`${old(0)}0`), null);
  await store.removeCheckpoint(id, execution, checkpoint.id);
  t.same(await store.findCheckpoint(checkpoint.id), { job_id: id, checkpoint: null });
  t.equal(await redis.exists('{bounds}:checkpoint-jobs', key('checkpoints')), 0);
  t.equal(await store.findCheckpoint(old(0)), null);
  t.same(await store.findCheckpoint(old(1)), { job_id: 'job_x', checkpoint: null });
  t.equal(await redis.zcard(removed), 100_000);
  t.same(await redis.keys('{bounds}:checkpoint:*'), [], 'no key per checkpoint');
});

t.test('nothing is kept of a pool without a worker and a job', async (t) => {
  await store.announceWorker(testWorker('here', 1), LEASE_MS);
  await store.announceWorker({ ...testWorker('gone', 1), pool: 'once' }, 1);
  const job = await createTestJob(store, { resources: { pool: 'waited' } });
  t.ok((await store.listPools()).some(({ name }) => name === 'waited'));
  await store.requestCancel(job.id);
  await forgetEmptyPools('default');
  t.strictSame(await redis.keys('{bounds}:pool:once:*'), []);
  t.strictSame(await redis.keys('{bounds}:worker:*'), ['{bounds}:worker:here']);
  // Every operation on a job that has ended.
  const before = (await store.getJob(job.id)) as Job;
  await store.updateJob({ before, spec: job.spec, requested_ranks: 1, changed: ['labels'] });
  await forgetEmptyPools('default');
  t.strictSame(await redis.keys('{bounds}:pool:waited:*'), []);
});

t.test('fair-share times of projects are kept for a day', async (t) => {
  const pool = await TestPool.open(t, server, { a: 2 });
  await pool.redis.zadd(
    pool.key('pool:default:last-allocations'),
    String(Date.now() - 2 * 86_400_000),
    'gone group',
  );
  await pool.placements(await pool.job());
  t.strictSame(await pool.redis.zrange(pool.key('pool:default:last-allocations'), 0, '-1'), ['default ']);
});

/** Reads all pools, as the scheduler does, until only the pools `left` remain. */
async function forgetEmptyPools(...left: string[]): Promise<void> {
  let pools: string[] = [];
  do {
    pools = await store.schedulerPools();
    for (const pool of pools) await store.readSnapshot(pool, 0);
  } while (pools.join() !== left.join());
}
