/** What a worker whose claim was lost in a failover may still do: nothing, though its epoch has come again. */
import t from 'tap';
import { startTestRedis } from '../platform/testing/redis.js';
import { openJobStore } from './job-store.js';
import { createTestJob } from './testing/jobs.js';
import { workerWrites } from './testing/worker-writes.js';

const LEASE_MS = 60_000;

t.test(
  'of two workers with the same epoch only the one whose claim the server knows may write',
  async (t) => {
    const redis = await startTestRedis();
    const store = await openJobStore({ url: redis.url });
    t.teardown(async () => {
      await store.close();
      await redis.stop();
    });
    const { id } = await createTestJob(store);
    const failOver = await redis.leaveReplicaBehind();
    const lost = await store.claimAttempt(id, 1, 'a', LEASE_MS);
    await failOver();
    const held = await store.claimAttempt(id, 1, 'b', LEASE_MS);
    if (!lost.granted || !held.granted) throw new Error('not granted');
    t.equal(held.job.epoch, lost.job.epoch);
    for (const [name, write] of Object.entries(workerWrites(store, id, lost.execution)))
      await t.rejects(write(), { code: 'stale_epoch' }, name);
    t.match(await store.renewLease(id, held.execution, LEASE_MS), { state: 'provisioning' });
  },
);
