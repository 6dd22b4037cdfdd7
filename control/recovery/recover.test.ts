import t from 'tap';
import { ulid } from 'ulid';
import { MANIFEST_FILE, pinKey } from '../../formats/checkpoint/layout.js';
import { resolveSteps } from '../../job-document/index.js';
import {
  keepSpec,
  putDatasetDocument,
  putDesired,
  putQuotaDocument,
  putResult,
  putSpec,
} from '../../state/index.js';
import { testDataset, testSpec } from '../../state/testing/jobs.js';
import {
  checkpoint,
  create,
  dataset,
  jobOf,
  LEASE_MS,
  loseAndRecover,
  run,
  stores,
} from '../testing/recovery.js';
import { EPOCH_JUMP } from './rebuild.js';

t.test('everything is restored to its project', async (t) => {
  const s = await stores(t);
  const theirs = { ...testDataset(), project: 'team-b' };
  await putDatasetDocument(s.objects, theirs);
  await s.store.putDataset(theirs);
  const job = await create(s, { project: 'team-b' });
  const quota = { max_jobs: 1, max_ranks: null, max_storage_bytes: 1 };
  await putQuotaDocument(s.objects, 'team-b', quota);
  const ours = testDataset();
  await putDatasetDocument(s.objects, ours);

  await loseAndRecover(s);
  t.equal(await s.store.projectOfJob(job.id), 'team-b');
  t.match((await s.store.listJobs({ project: 'team-b' })).data, [
    { id: job.id, spec: { project: 'team-b' } },
  ]);
  t.same((await s.store.listDatasets({ project: 'team-b' })).data, [theirs]);
  t.same(await s.store.getQuota('team-b'), quota, 'although usage exceeds it');
  await t.rejects(create(s, { project: 'team-b' }), { code: 'jobs_quota_exceeded' });
  t.match(await s.store.getDataset(ours.id), { project: 'default' });
  t.same((await s.store.listJobs()).data, []);
});

t.test('a running job is queued with its checkpoints, and its worker is fenced', async (t) => {
  const s = await stores(t);
  const before = await create(s, { labels: { team: 'a' } });
  const claim = await s.store.claimAttempt(before.id, 1, 'old', LEASE_MS);
  if (!claim.granted) throw new Error(claim.code);
  const first = await checkpoint(s, before, claim.execution, 10);
  // The last checkpoint was saved by an agent that died before it could commit the record.
  const last = await checkpoint(s, before, claim.execution, 20, false);
  await s.objects.put(pinKey(first.prefix), new Uint8Array());

  const { found } = await loseAndRecover(s);
  t.same(found, {
    datasets: 1,
    models: 0,
    sweeps: 0,
    jobs: { queued: 1 },
    checkpoints: 2,
    unaccepted: 0,
    unusable: 0,
    untouched: 0,
  });
  const job = await jobOf(s, before.id);
  t.match(job, { state: 'queued', reason: 'recovered', attempt: 1, labels: { team: 'a' } });
  t.same(job.spec, before.spec);
  t.match(job.latest_checkpoint, { id: last.id, step: 20 });
  t.same(last.eval_losses, { validation: 2.5 }, 'the losses of checkpoints are restored, too');
  t.match(job.progress, { step: 20, percent: 20, tokens: 20 * 16 * 128 });
  t.same((await s.store.listCheckpoints(job.id)).data, [last, { ...first, pinned: true }]);
  t.match(await s.store.findCheckpoint(first.id), { job_id: job.id });
  t.equal((await s.store.listJobs({ label: ['team=a'], state: ['queued'] })).data.length, 1);
  await t.rejects(s.store.deleteDataset(dataset.id), { code: 'dataset_in_use' });

  await t.rejects(s.store.renewLease(job.id, claim.execution, LEASE_MS), { code: 'stale_epoch' });
  await t.rejects(s.store.appendEvent(job.id, claim.execution, { type: 'x' }), { code: 'stale_epoch' });
  const next = await s.store.claimAttempt(job.id, 1, 'new', LEASE_MS);
  t.match(next, { granted: true, job: { epoch: claim.job.epoch + EPOCH_JUMP + 1 } });
  t.match(await s.store.readStream(job.id, null, 10), [{ type: 'job.recovered', data: { checkpoints: 2 } }]);
});

t.test('a checkpoint with a changed tensor is the newest again', async (t) => {
  for (const token of ['0', 'z']) {
    const s = await stores(t);
    const job = await create(s);
    const claim = await s.store.claimAttempt(job.id, 1, 'old', LEASE_MS);
    if (!claim.granted) throw new Error(claim.code);
    const saved = await checkpoint(s, job, claim.execution, 10);
    await putDesired(s.objects, await s.store.releaseAttempt(job.id, claim.execution, { to: 'paused' }));
    const madeFrom = {
      checkpoint_id: saved.id,
      edit_id: 'e',
      tensor: 'p0',
      tensor_state: 'master',
    } as const;
    const made = await checkpoint(s, job, `${claim.job.epoch}-${token}`, 10, false, madeFrom);
    await s.store.commitEdit(made, { sourceId: saved.id, epoch: claim.job.epoch });
    await loseAndRecover(s);
    t.match((await jobOf(s, job.id)).latest_checkpoint, { id: made.id, step: 10 });
    t.strictSame((await s.store.listCheckpoints(job.id)).data, [made, saved]);
  }
});

t.test('a job whose samples are not counted is rebuilt with its epochs', async (t) => {
  const s = await stores(t);
  const before = await create(s, { train: { epochs: 2 } });
  await loseAndRecover(s);
  const job = await jobOf(s, before.id);
  t.strictSame(job.spec, before.spec);
  t.match(job, { state: 'queued', progress: { step: 0, total_steps: null, percent: null } });
  const { spec } = resolveSteps(job.spec, { samples: 160, continues: null });
  const { requested_ranks } = job;
  const counted = await s.store.updateJob({ before: job, spec, requested_ranks, changed: ['train'] });
  t.match(counted, { spec: { train: { steps: 20 } }, progress: { total_steps: 20, percent: 0 } });
  t.notOk('epochs' in counted.spec.train);
  await keepSpec(s, counted);
  await loseAndRecover(s);
  t.strictSame((await jobOf(s, before.id)).spec, counted.spec, 'a later loss keeps the steps');
  await t.rejects(
    s.store.updateJob({ before: job, spec, requested_ranks, changed: ['train'] }),
    { code: 'version_mismatch' },
    'only once',
  );
});

t.test(
  'a second loss begins above every epoch of the first, though nothing was saved in between',
  async (t) => {
    const s = await stores(t);
    const { id } = await create(s);
    await loseAndRecover(s);
    const claim = await s.store.claimAttempt(id, 1, 'first', LEASE_MS);
    if (!claim.granted) throw new Error(claim.code);
    await loseAndRecover(s);
    await t.rejects(s.store.renewLease(id, claim.execution, LEASE_MS), { code: 'stale_epoch' });
    const job = await jobOf(s, id);
    t.ok(job.epoch > claim.job.epoch);
    t.ok(job.state_version > claim.job.state_version, 'and so is its version');
  },
);

t.test('desired states and results are restored', async (t) => {
  const s = await stores(t);
  const waiting = await create(s);
  const paused = await create(s);
  await putDesired(s.objects, await s.store.requestPause(paused.id));
  const cancelled = await create(s);
  await putDesired(s.objects, await s.store.requestCancel(cancelled.id));
  const failed = await create(s);
  const failure = {
    category: 'user',
    code: 'diverged',
    message: 'no',
    rank: null,
    step: 3,
    retryable: false,
  } as const;
  const end = {
    reason: 'diverged',
    step: 0,
    total_steps: 100,
    state_digest: null,
    checkpoint: null,
    metrics: null,
    export: null,
  };
  const at = new Date().toISOString();
  const result = { ...end, job_id: failed.id, state: 'failed', epoch: 1, failure, finished_at: at } as const;
  await putResult(s.objects, result);
  const outlived = await create(s);
  await putResult(s.objects, { ...result, job_id: outlived.id });
  await checkpoint(s, outlived, '2-a', 10, false);

  const { found } = await loseAndRecover(s);
  t.same(found.jobs, { queued: 2, paused: 1, cancelled: 1, failed: 1 });
  t.match(await jobOf(s, waiting.id), { state: 'queued', reason: null });
  t.match(await jobOf(s, paused.id), { state: 'paused', reason: 'user_request' });
  t.match(await jobOf(s, cancelled.id), { state: 'cancelled', reason: 'user_request' });
  t.match(await jobOf(s, failed.id), { state: 'failed', reason: 'diverged', failure, updated_at: at });
  t.match(
    await jobOf(s, outlived.id),
    { state: 'queued', latest_checkpoint: { step: 10 } },
    'the result of a worker that lost its lease while failing the job does not count',
  );
  await t.rejects(s.store.requestCancel(failed.id), { code: 'job_final' });
  t.match(await s.store.resumeJob(paused.id), { state: 'queued', attempt: 2 });
  await s.store.finishJob(waiting.id, null, 'cancelled');
});

t.test('a spec without an accepted job restores no job', async (t) => {
  const s = await stores(t);
  const id = `job_${ulid()}`;
  await putSpec(s.objects, { job_id: id, spec: testSpec(dataset.id), idempotency: null });
  const { found } = await loseAndRecover(s);
  t.match(found, { jobs: {}, unaccepted: 1 });
  t.equal(await s.store.getJob(id), null);
});

t.test('a spec of version 1 restores a job', async (t) => {
  const s = await stores(t);
  const id = `job_${ulid()}`;
  const document = { format_version: 1, job_id: id, spec: testSpec(dataset.id) };
  await s.objects.put(`jobs/${id}/spec.json`, Buffer.from(JSON.stringify(document)));
  t.match((await loseAndRecover(s)).found.jobs, { queued: 1 });
  t.match(await jobOf(s, id), { state: 'queued' });
});

t.test('damaged documents are reported and skipped; the rest is restored', async (t) => {
  const s = await stores(t);
  const job = await create(s);
  const good = await checkpoint(s, job, '1-a', 10, false);
  const bad = await checkpoint(s, job, '1-a', 20, false);
  await s.objects.put(`${bad.prefix}/${MANIFEST_FILE}`, Buffer.from('{"format_version": 2'));
  const broken = await create(s);
  await s.objects.put(`jobs/${broken.id}/spec.json`, Buffer.from('{}'));
  await s.objects.put('datasets/ds_x/dataset.json', Buffer.from('[]'));
  const { found, unusable } = await loseAndRecover(s);
  t.same(unusable.sort(), [
    'datasets/ds_x/dataset.json',
    `${bad.prefix}/${MANIFEST_FILE}`,
    `jobs/${broken.id}/spec.json`,
  ]);
  t.equal(found.unusable, 3);
  t.match(await jobOf(s, job.id), { latest_checkpoint: { id: good.id } });
});

t.test('an interrupted rebuild can be continued, and overwrites nothing', async (t) => {
  const s = await stores(t);
  const [first, second] = [await create(s), await create(s)];
  await s.redis.forget();
  let restored = 0;
  const cut = new Proxy(s.store, {
    get: (target, name) => {
      if (name === 'restoreJob' && restored++ > 0) throw new Error('cut off');
      return Reflect.get(target, name);
    },
  });
  await t.rejects(run({ ...s, store: cut }), /cut off/);
  t.ok(await s.store.getJob(first.id));
  t.equal(await s.store.getJob(second.id), null);
  await putDesired(s.objects, await s.store.requestPause(first.id));
  t.match((await run(s)).found.jobs, { queued: 1 });
  t.match(await jobOf(s, first.id), { state: 'paused' });
  t.match(await jobOf(s, second.id), { state: 'queued' });
  t.match((await run(s)).found, { jobs: {}, untouched: 2 }, 'and it is complete then');
  await s.redis.forget();
  await run(s);
  t.match(await jobOf(s, first.id), { state: 'paused' });
});
