/** Held checkpoints are not removed. */
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import type { Checkpoint, Job, ResolvedJobSpec } from '../../contracts/index.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { type JobStore, openJobStore } from '../job-store.js';
import { executionAt, noteExecutions } from '../testing/executions.js';
import { createTestJob, testSpec } from '../testing/jobs.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

interface Source {
  store: JobStore;
  job: Job;
  old: Checkpoint;
}

const checkpointAt = (step: number): Checkpoint => ({
  id: `ckpt_${ulid()}`,
  job_id: 'job',
  step,
  bytes: 1,
  world_size: 1,
  state_digest: 'd',
  prefix: `p/${step}`,
  committed_at: new Date().toISOString(),
  pinned: false,
  damaged: false,
});

/** Creates a job with two checkpoints, held by a worker at epoch 1. */
async function source(t: Test): Promise<Source> {
  const store = noteExecutions(await openJobStore({ url: server.url, prefix: `{${ulid()}}` }));
  t.teardown(() => store.close());
  const job = await createTestJob(store);
  await store.claimAttempt(job.id, 1, 'w', 60_000);
  const old = checkpointAt(1);
  for (const checkpoint of [old, checkpointAt(2)])
    await store.commitCheckpoint(job.id, executionAt(job.id, 1), checkpoint);
  return { store, job, old };
}

/** Creates a job that begins with a checkpoint. */
async function fork({ store, job, old }: Source): Promise<Job> {
  const spec: ResolvedJobSpec = testSpec(job.spec.data.dataset ?? '');
  spec.model.init_from = { checkpoint: old.id, job: job.id, prefix: old.prefix, restore: 'continue' };
  return (await store.createJob({ id: `job_${ulid()}`, spec })).job;
}

const remove = ({ store, job, old }: Source) =>
  store.removeCheckpoint(job.id, executionAt(job.id, 1), old.id);
const held = { code: 'checkpoint_held' };

t.test('a held checkpoint is not removed until the last holder releases it', async (t) => {
  const s = await source(t);
  t.ok(await s.store.holdCheckpoint(s.old.id, 'export a'));
  t.ok(await s.store.holdCheckpoint(s.old.id, 'export b'));
  await s.store.letGoCheckpoint(s.old.id, 'export a');
  await s.store.letGoCheckpoint(s.old.id, 'export a');
  await t.rejects(remove(s), { ...held, message: /export b/ });
  await t.rejects(s.store.deleteCheckpoint(s.old.id), held);
  await s.store.letGoCheckpoint(s.old.id, 'export b');
  t.ok(await remove(s));
  t.notOk(await s.store.holdCheckpoint(s.old.id, 'export c'), 'a removed checkpoint can not be held');
});

t.test('a hold expires', async (t) => {
  const s = await source(t);
  await s.store.holdCheckpoint(s.old.id, 'killed', 20);
  for (let removed = false; !removed; ) {
    removed = await remove(s).catch((error: { code: string }) => {
      if (error.code !== 'checkpoint_held') throw error;
      return false;
    });
  }
  t.match(await s.store.findCheckpoint(s.old.id), { checkpoint: null });
});

t.test('a job holds its initial checkpoint until it has a checkpoint of its own', async (t) => {
  const s = await source(t);
  const forked = await fork(s);
  await t.rejects(remove(s), held);
  await s.store.claimAttempt(forked.id, 1, 'w', 60_000);
  await t.rejects(remove(s), held);
  await s.store.commitCheckpoint(forked.id, executionAt(forked.id, 1), checkpointAt(1));
  t.ok(await remove(s));
});

t.test('or until it ends', async (t) => {
  const s = await source(t);
  const forked = await fork(s);
  await s.store.requestCancel(forked.id);
  t.ok(await remove(s));
  await t.rejects(fork(s), { code: 'checkpoint_not_found' }, 'then no job can begin with it any more');
});

t.test('a restored job holds it as well, in either order of restoring', async (t) => {
  const s = await source(t);
  const forked = await fork(s);
  const empty = await source(t);
  await empty.store.restoreJob({ job: forked, checkpoints: [], idempotency: null });
  const job = { ...s.job, id: `job_${ulid()}` };
  await empty.store.restoreJob({ job, checkpoints: [s.old, checkpointAt(2)], idempotency: null });
  await t.rejects(empty.store.deleteCheckpoint(s.old.id), held);
});
