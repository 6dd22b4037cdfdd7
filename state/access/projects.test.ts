/** Quotas, the use that counts against them, and daily usage. */
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import type { Job, JobSpec, ProjectQuota } from '../../contracts/index.js';
import { testModel } from '../../formats/testing/models.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { type JobStore, openJobStore } from '../job-store.js';
import { createTestJob, testDataset, testSpec } from '../testing/jobs.js';
import { claimAllocated } from '../testing/pools.js';
import { testWorker } from '../testing/workers.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

const NO_LIMITS: ProjectQuota = { max_jobs: null, max_ranks: null, max_storage_bytes: null };
const project = 'team-b';
const ranks = (preferred: number): Partial<JobSpec> => ({
  project,
  resources: { ranks: { min: 1, preferred, max: 4 } },
});

async function freshStore(t: Test, quota: Partial<ProjectQuota> = {}): Promise<JobStore> {
  const store = await openJobStore({ url: server.url, prefix: `{${ulid()}}` });
  t.teardown(() => store.close());
  await store.putQuota(project, { ...NO_LIMITS, ...quota });
  return store;
}

const use = (store: JobStore) => store.getUse(project);
const checkpoint = (job: Job, step: number, bytes = 100) => ({
  id: `ckpt_${ulid()}`,
  job_id: job.id,
  step,
  world_size: 1,
  state_digest: '0'.repeat(32),
  bytes,
  committed_at: '',
  pinned: false,
  damaged: false,
  prefix: `jobs/${job.id}/checkpoints/${step}-1-0`,
});

t.test('a quota is set, replaced and read', async (t) => {
  const store = await freshStore(t, { max_jobs: 2, max_storage_bytes: 9_000_000_000_000_000 });
  t.same(await store.getQuota(project), {
    ...NO_LIMITS,
    max_jobs: 2,
    max_storage_bytes: 9_000_000_000_000_000,
  });
  await store.putQuota(project, { ...NO_LIMITS, max_ranks: 0 });
  t.same(await store.getQuota(project), { ...NO_LIMITS, max_ranks: 0 });
  t.same(await store.getQuota('default'), NO_LIMITS);
  t.same(await store.listProjects(), ['default', project]);
});

t.test('concurrent requests create no more jobs than the quota allows', async (t) => {
  const store = await freshStore(t, { max_jobs: 3 });
  const tries = await Promise.allSettled(Array.from({ length: 10 }, () => createTestJob(store, { project })));
  const refused = tries.filter((one) => one.status === 'rejected');
  t.equal(refused.length, 7);
  t.match(refused[0], {
    reason: { code: 'jobs_quota_exceeded', message: /3 unfinished jobs, .* quota is 3: .* operator/ },
  });
  await createTestJob(store);
  t.pass('another project is not touched');

  const [first, second] = (await store.listJobs({ project })).data as [Job, Job];
  await store.requestPause(first.id);
  await t.rejects(
    createTestJob(store, { project }),
    { code: 'jobs_quota_exceeded' },
    'a paused job has not ended',
  );
  await store.requestCancel(second.id);
  await createTestJob(store, { project });
});

t.test('a repeated request gets the same reply after a change of the quota', async (t) => {
  const store = await freshStore(t, { max_jobs: 1 });
  const dataset = testDataset();
  await store.putDataset(dataset);
  const idempotency = { scope: 's', key: 'k', body_hash: 'h' };
  const create = () =>
    store.createJob({ id: `job_${ulid()}`, spec: testSpec(dataset.id, { project }), idempotency });
  const { job } = await create();
  t.match(await create(), { job: { id: job.id }, replayed: true });
});

t.test('ranks count from creation to the end, except during pauses', async (t) => {
  const store = await freshStore(t, { max_ranks: 5 });
  await store.announceWorker(testWorker('w', 8), 60_000);
  const a = await createTestJob(store, ranks(3));
  await t.rejects(createTestJob(store, ranks(3)), {
    code: 'ranks_quota_exceeded',
    message: /3 ranks of a quota of 5/,
  });
  const b = await createTestJob(store, ranks(2));
  t.match(await use(store), { ranks: 5, jobs: { queued: 2 } });
  await t.rejects(store.requestResize(b.id, 3), { code: 'ranks_quota_exceeded' });
  t.equal((await store.getJob(b.id))?.requested_ranks, 2);
  await store.requestResize(b.id, 1);
  await store.requestResize(a.id, 4);
  t.match(await use(store), { ranks: 5 });

  await store.requestPause(b.id);
  t.match(await use(store), { ranks: 4 });
  await store.requestResize(b.id, 2);
  t.match(await use(store), { ranks: 4 }, 'ranks of a paused job do not count');
  await t.rejects(store.resumeJob(b.id), { code: 'ranks_quota_exceeded' });
  t.equal((await store.getJob(b.id))?.state, 'paused');
  await store.resumeJob(b.id, { ranks: 1 });
  t.match(await use(store), { ranks: 5 });

  const claim = await claimAllocated(store, a);
  if (!claim) throw new Error('it waits');
  for (const to of ['starting', 'running'] as const) await store.transition(a.id, claim.execution, to);
  await store.transition(a.id, claim.execution, 'recovering');
  t.match(await use(store), { ranks: 5 }, 'a recovering job counts');
  await store.requestCancel(a.id);
  t.match(await use(store), { ranks: 5 }, 'a cancelling job counts');
  await store.finishJob(a.id, claim.execution, 'cancelled');
  t.match(await use(store), { ranks: 1 });
  await store.requestCancel(b.id);
  t.match(await use(store), { ranks: 0, jobs: { queued: 0, cancelled: 2 } });

  await store.putQuota(project, { ...NO_LIMITS, max_ranks: 2 });
  const c = await createTestJob(store, ranks(2));
  await store.putQuota(project, { ...NO_LIMITS, max_ranks: 1 });
  await store.requestResize(c.id, 1);
  t.match(await use(store), { ranks: 1 }, 'shrinking is always possible');
});

t.test('storage: datasets, models and checkpoints', async (t) => {
  const store = await freshStore(t, { max_storage_bytes: 3000 });
  const dataset = { ...testDataset(), project };
  await store.putDataset(dataset);
  await store.putDataset(dataset);
  t.match(await use(store), { dataset_bytes: dataset.bytes }, 'counted once, even when put repeatedly');
  const model = { ...testModel(`mdl_${ulid()}`), project, bytes: 1500 };
  await store.putModel(model);
  t.match(await use(store), { dataset_bytes: 1000, model_bytes: 1500 });
  const large = { ...testDataset(), project };
  await t.rejects(store.putDataset(large), { code: 'storage_quota_exceeded', message: /stores 2500 bytes/ });
  t.equal(await store.getDataset(large.id), null);

  const { job } = await store.createJob({ id: `job_${ulid()}`, spec: testSpec(dataset.id, { project }) });
  const claim = await store.claimAttempt(job.id, 1, 'w', 60_000);
  if (!claim.granted) throw new Error(claim.code);
  const [one, two] = [checkpoint(job, 1), checkpoint(job, 2, 700)];
  for (const made of [one, two, two]) await store.commitCheckpoint(job.id, claim.execution, made);
  t.match(await use(store), { checkpoint_bytes: 800 }, 'a checkpoint is never refused');
  await store.pinCheckpoint(one.id, true);
  t.match(await use(store), { checkpoint_bytes: 800 });
  await t.rejects(store.createJob({ id: `job_${ulid()}`, spec: testSpec(dataset.id, { project }) }), {
    code: 'storage_quota_exceeded',
  });
  await store.removeCheckpoint(job.id, claim.execution, two.id);
  await store.pinCheckpoint(one.id, false);
  await store.finishJob(job.id, claim.execution, 'failed');
  await store.deleteCheckpoint(one.id);
  await store.deleteModel(model.id);
  await store.deleteDataset(dataset.id);
  t.match(await use(store), { dataset_bytes: 0, model_bytes: 0, checkpoint_bytes: 0 });
});

t.test('records restored after a loss count, and no quota refuses them', async (t) => {
  const store = await freshStore(t, { max_jobs: 0, max_ranks: 0, max_storage_bytes: 0 });
  await store.beginRestore();
  const dataset = { ...testDataset(), project };
  await store.putDataset(dataset);
  const other = await freshStore(t);
  const job = await createTestJob(other, ranks(2));
  const spec = { ...job.spec, data: { ...job.spec.data, dataset: dataset.id } };
  const restored = { job: { ...job, spec }, checkpoints: [checkpoint(job, 1)], idempotency: null };
  t.ok(await store.restoreJob(restored));
  t.match(await use(store), { jobs: { queued: 1 }, ranks: 2, dataset_bytes: 1000, checkpoint_bytes: 100 });
});

t.test('usage is added up by day', async (t) => {
  const store = await freshStore(t);
  const today = new Date().toISOString().slice(0, 10);
  const job = await createTestJob(store, ranks(2));
  await store.announceWorker(testWorker('w', 8), 60_000);
  const claim = await claimAllocated(store, job, 60_000, { price_per_rank_hour: 3600 });
  if (!claim) throw new Error('it waits');
  const report = async (tokens: number) => {
    await store.report(job.id, claim.execution, [], { ...job.progress, tokens });
  };
  await report(1000);
  await report(400);
  await report(1000);
  // Repeated until the clock of the server has advanced.
  let used = (await store.getJob(job.id))?.usage;
  while (used?.rank_seconds === 0) {
    await store.renewLease(job.id, claim.execution, 60_000);
    used = (await store.getJob(job.id))?.usage;
  }
  const days = await store.getUsage(project, '2026-01-01', today);
  t.equal(days[0]?.date, '2026-01-01');
  t.equal(days.at(-1)?.date, today);
  const [day, ...others] = days.filter(({ jobs }) => jobs > 0);
  t.same(others, []);
  t.match(day, { jobs: 1, tokens: 1600 }, 'repeated tokens count once more');
  t.ok(Math.abs((day?.rank_seconds ?? 0) - (used?.rank_seconds ?? 0)) < 1e-9);
  t.ok(Math.abs((day?.run_seconds ?? 0) * 2 - (day?.rank_seconds ?? 0)) < 1e-9);
  t.ok(Math.abs((day?.cost ?? 0) - (day?.rank_seconds ?? 0)) < 1e-6, 'one per second and rank');
  t.match(await store.getUsage('default', today, today), [{ date: today, jobs: 0, tokens: 0 }]);
});

t.test('a job that is changed, retried or deleted counts in its new state', async (t) => {
  const store = await freshStore(t, { max_ranks: 3 });
  const job = await createTestJob(store, ranks(2));
  const change = async (requestedRanks: number) => {
    const before = (await store.getJob(job.id)) ?? job;
    return store.updateJob({
      before,
      spec: before.spec,
      requested_ranks: requestedRanks,
      changed: ['resources'],
    });
  };
  await t.rejects(change(4), { code: 'ranks_quota_exceeded' });
  await change(3);
  t.match(await use(store), { ranks: 3 });
  const claim = await store.claimAttempt(job.id, 1, 'w', 60_000);
  if (!claim.granted) throw new Error(claim.code);
  await store.commitCheckpoint(job.id, claim.execution, checkpoint(job, 1));
  await store.finishJob(job.id, claim.execution, 'failed');
  t.match(await use(store), { ranks: 0 });

  const other = await createTestJob(store, ranks(1));
  await t.rejects(store.retryJob(job.id), { code: 'ranks_quota_exceeded' });
  t.equal((await store.getJob(job.id))?.state, 'failed');
  await store.requestCancel(other.id);
  await store.retryJob(job.id);
  t.match(await use(store), { ranks: 3, jobs: { queued: 1, failed: 0 } });

  await store.requestCancel(job.id);
  await store.deleteJob(job.id, { artifacts: true });
  t.match(await use(store), { ranks: 0, checkpoint_bytes: 0, jobs: { cancelled: 1 } });
});
