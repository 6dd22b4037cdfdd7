/** Data that Redis keeps of a deleted job: only the entry for the removal of its objects. */
import { Redis } from 'ioredis';
import t from 'tap';
import { ulid } from 'ulid';
import type { Checkpoint } from '../../contracts/index.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { openJobStore } from '../job-store.js';
import { createTestJob } from '../testing/jobs.js';
import { claimAllocated } from '../testing/pools.js';
import { testWorker } from '../testing/workers.js';

const server = await startTestRedis();
t.teardown(() => server.stop());
const redis = new Redis({ path: new URL(server.url).pathname });
t.teardown(() => redis.disconnect());

/** Returns the keys that contain the job's id in their name, as a member or field, or in a hash's value. */
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

const checkpointOf = (jobId: string): Checkpoint => ({
  id: `ckpt_${ulid()}`,
  job_id: jobId,
  step: 1,
  world_size: 1,
  state_digest: '0'.repeat(32),
  bytes: 100,
  committed_at: '',
  pinned: false,
  damaged: false,
  prefix: `jobs/${jobId}/checkpoints/1-1-0`,
});

t.test('only the entry for the removal of its objects is left of a deleted job', async (t) => {
  const store = await openJobStore({ url: server.url, prefix: '{deleted}' });
  t.teardown(() => store.close());
  await store.announceWorker(testWorker('w', 4), 60_000);
  const job = await createTestJob(store, { labels: { team: 'a', stage: 'b' } });
  const claim = await claimAllocated(store, job);
  if (!claim) throw new Error('it waits');
  await store.appendLogs(job.id, claim.execution, []);
  await store.commitCheckpoint(job.id, claim.execution, checkpointOf(job.id));
  await store.finishJob(job.id, claim.execution, 'failed');
  t.ok((await traces(job.id)).length > 5);
  await store.deleteJob(job.id, { artifacts: true });
  t.same(await traces(job.id), ['{deleted}:deleted-jobs']);
});

t.test(
  'a checkpoint that a user has deleted is not recorded again while its objects may exist',
  async (t) => {
    const store = await openJobStore({ url: server.url, prefix: '{checkpoint}' });
    t.teardown(() => store.close());
    const job = await createTestJob(store);
    const claim = async (attempt: number) => {
      const claimed = await store.claimAttempt(job.id, attempt, 'w', 60_000);
      if (!claimed.granted) throw new Error(claimed.code);
      return claimed.execution;
    };
    const first = await claim(1);
    const checkpoint = checkpointOf(job.id);
    await store.commitCheckpoint(job.id, first, checkpoint);
    await store.finishJob(job.id, first, 'failed');
    await store.deleteCheckpoint(checkpoint.id);
    const { id, prefix } = checkpoint;
    t.strictSame(await store.listDeletedCheckpoints(), [{ id, job_id: job.id, prefix, project: 'default' }]);
    await store.retryJob(job.id);
    const second = await claim(2);
    const again = () => store.commitCheckpoint(job.id, second, checkpoint);
    await t.rejects(again(), { code: 'checkpoint_not_found' });
    t.equal((await store.getJob(job.id))?.latest_checkpoint, null);
    await store.forgetDeletedCheckpoint(id);
    t.strictSame(await store.listDeletedCheckpoints(), []);
  },
);
