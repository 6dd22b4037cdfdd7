/** Tests of the result document. */
import { pathToFileURL } from 'node:url';
import t from 'tap';
import type { JobExport } from '../../../contracts/index.js';
import { resultKey } from '../../../formats/checkpoint/layout.js';
import { openObjectStore } from '../../../platform/object-store/index.js';
import { startTestRedis } from '../../../platform/testing/redis.js';
import { openJobStore } from '../../../state/index.js';
import { createTestJob } from '../../../state/testing/jobs.js';
import { testCheckpoint } from '../../../state/testing/worker-writes.js';
import { claimForTest } from '../../testing/attempt-context.js';
import { succeed } from './finish.js';
import type { ResumePoint } from './load/load-point.js';

t.test('a worker that lost the lease of the job writes no result', async (t) => {
  const redis = await startTestRedis();
  const store = await openJobStore({ url: redis.url });
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  const { id: jobId } = await createTestJob(store);
  const lost = await claimForTest({ store, objects, job_id: jobId });
  const held = await claimForTest({ store, objects, job_id: jobId });
  t.teardown(async () => {
    await Promise.all([lost.close(), held.close()]);
    await objects.close();
    await store.close();
    await redis.stop();
  });
  const manifest = { early_stopping: null };
  const last = { checkpoint: testCheckpoint(jobId, 100), manifest } as ResumePoint;
  const exported: JobExport = { checkpoint_id: 'x', step: 1, prefix: 'x', state_digest: '', files: [] };
  await t.rejects(succeed(lost.ctx, last, exported), { code: 'stale_epoch' });
  t.equal(await objects.head(resultKey(jobId)), null);
  for (const state of ['starting', 'running'] as const)
    await store.transition(jobId, held.ctx.lease.execution, state);
  await succeed(held.ctx, last, exported);
  t.ok(await objects.head(resultKey(jobId)));
  t.match(await store.getJob(jobId), { state: 'succeeded' });
});
