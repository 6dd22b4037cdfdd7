/** After a job is deleted, Redis keeps the order to remove its objects and nothing else of it. */
import { Redis } from 'ioredis';
import t from 'tap';
import { ulid } from 'ulid';
import { createTestJob } from '../testing/jobs.js';
import { startTestRedis } from '../testing/redis.js';
import { testWorker } from '../testing/workers.js';
import { openJobStore } from './index.js';

const server = await startTestRedis();
t.teardown(() => server.stop());
const redis = new Redis({ path: new URL(server.url).pathname });
t.teardown(() => redis.disconnect());

/** Keys that name the job, or have it in them as a member, a field or a hash's value. */
async function traces(id: string): Promise<string[]> {
  const found: string[] = [];
  for (const key of await redis.keys('*')) {
    const type = await redis.type(key);
    let inside: string[] = [];
    if (type === 'zset') inside = await redis.zrange(key, '0', '-1');
    if (type === 'set') inside = await redis.smembers(key);
    if (type === 'hash') inside = Object.entries(await redis.hgetall(key)).flat();
    if ([key, ...inside].some((text) => text.includes(id))) found.push(key);
  }
  return found;
}

t.test('of a deleted job the order to remove its objects is left, and nothing else', async (t) => {
  const store = await openJobStore({ url: server.url, prefix: '{deleted}' });
  t.teardown(() => store.close());
  await store.announceWorker(testWorker('w', 4), 60_000);
  const job = await createTestJob(store, { labels: { team: 'a', stage: 'b' } });
  const claim = await store.claimAttempt(job.id, 1, 'w', 60_000, { spec: job.spec, spread: false });
  if (!claim.granted) throw new Error(claim.code);
  await store.appendLogs(job.id, claim.epoch, []);
  await store.commitCheckpoint(job.id, claim.epoch, {
    id: `ckpt_${ulid()}`,
    job_id: job.id,
    step: 1,
    world_size: 1,
    state_digest: '0'.repeat(32),
    bytes: 100,
    committed_at: '',
    pinned: false,
    damaged: false,
    prefix: `jobs/${job.id}/checkpoints/1-1-0`,
  });
  await store.finishJob(job.id, claim.epoch, 'failed');
  t.ok((await traces(job.id)).length > 5);
  await store.deleteJob(job.id, { artifacts: true });
  t.same(await traces(job.id), ['{deleted}:deleted-jobs']);
});
