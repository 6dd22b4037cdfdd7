import t, { type Test } from 'tap';
import { monotonicFactory, ulid } from 'ulid';
import type { Checkpoint, Job } from '../../contracts/index.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import type { JobStore } from '../job-store.js';
import { executionAt, noteExecutions } from '../testing/executions.js';
import { createTestJob } from '../testing/jobs.js';
import { openStores } from '../testing/stores.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

/** Later ids are greater, as those of changed checkpoints are than those of their sources. */
const nextId = monotonicFactory();
const checkpointAt = (jobId: string, step: number): Checkpoint => ({
  id: `ckpt_${nextId()}`,
  job_id: jobId,
  step,
  bytes: 1,
  world_size: 1,
  state_digest: 'd',
  prefix: `p/${ulid()}`,
  committed_at: new Date().toISOString(),
  pinned: false,
  damaged: false,
});

/** A job with checkpoints at steps 1 and 2, held by a worker at epoch 1. */
async function trained(t: Test): Promise<{ store: JobStore; job: Job; old: Checkpoint; newest: Checkpoint }> {
  const store = noteExecutions(await openStores(t, server.url).open());
  const job = await createTestJob(store);
  await store.claimAttempt(job.id, 1, 'w', 60_000);
  const [old, newest] = [1, 2].map((step) => checkpointAt(job.id, step)) as [Checkpoint, Checkpoint];
  for (const checkpoint of [old, newest])
    await store.commitCheckpoint(job.id, executionAt(job.id, 1), checkpoint);
  return { store, job, old, newest };
}

t.test('the changed checkpoint of a paused job is the latest, and the old one stays', async (t) => {
  const { store, job, old, newest } = await trained(t);
  const edited = checkpointAt(job.id, 2);
  const source = { sourceId: newest.id, epoch: 1 };
  await t.rejects(store.commitEdit(edited, source), { code: 'invalid_state' }, 'a worker holds the job');
  await store.releaseAttempt(job.id, executionAt(job.id, 1), { to: 'paused' });
  await t.rejects(store.commitEdit(edited, { sourceId: old.id, epoch: 1 }), {
    code: 'checkpoint_not_newest',
  });
  await store.commitEdit(edited, source);
  await store.commitEdit(edited, source);
  t.equal((await store.getJob(job.id))?.latest_checkpoint?.id, edited.id);
  const ids = (await store.listCheckpoints(job.id)).data.map(({ id }) => id);
  t.strictSame(ids, [edited.id, newest.id, old.id]);
  const events = await store.readStream(job.id, null, 100, ['event']);
  t.equal(
    events.filter((event) => 'type' in event && event.type === 'checkpoint.committed').length,
    3,
    'one event for two calls',
  );
  await t.rejects(store.commitEdit(checkpointAt(job.id, 2), source), { code: 'checkpoint_not_newest' });
});

t.test('a job that was resumed meanwhile keeps its checkpoint', async (t) => {
  const { store, job, newest } = await trained(t);
  await store.releaseAttempt(job.id, executionAt(job.id, 1), { to: 'paused' });
  await store.resumeJob(job.id);
  const edited = checkpointAt(job.id, 2);
  const source = { sourceId: newest.id, epoch: 1 };
  await t.rejects(store.commitEdit(edited, source), { code: 'invalid_state' }, 'queued');
  await store.claimAttempt(job.id, 2, 'w', 60_000);
  await store.releaseAttempt(job.id, executionAt(job.id, 2), { to: 'paused' });
  await t.rejects(store.commitEdit(edited, source), { code: 'invalid_state' }, 'paused again');
  t.equal((await store.getJob(job.id))?.latest_checkpoint?.id, newest.id);
});

t.test('a job that has ended', async (t) => {
  const { store, job, newest } = await trained(t);
  await store.finishJob(job.id, executionAt(job.id, 1), 'failed', { reason: 'diverged' });
  const edited = checkpointAt(job.id, 2);
  await store.commitEdit(edited, { sourceId: newest.id, epoch: 1 });
  t.equal((await store.getJob(job.id))?.latest_checkpoint?.id, edited.id);
  const gone = { ...edited, job_id: `job_${ulid()}` };
  await t.rejects(store.commitEdit(gone, { sourceId: newest.id, epoch: 1 }), { code: 'job_not_found' });
});
