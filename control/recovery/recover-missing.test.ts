/** `recover` with a Redis that has lost some of its records. */
import t from 'tap';
import { ulid } from 'ulid';
import {
  idempotencyEntry,
  putAccepted,
  putDatasetDocument,
  putDesired,
  putQuotaDocument,
  putSpec,
} from '../../state/index.js';
import { testDataset, testSpec } from '../../state/testing/jobs.js';
import { checkpoint, create, dataset, jobOf, LEASE_MS, run, stores } from '../testing/recovery.js';

t.test('after a failover missing records are restored, and existing ones stay as they are', async (t) => {
  const s = await stores(t);
  const quota = { max_jobs: 9, max_ranks: null, max_storage_bytes: null };
  await putQuotaDocument(s.objects, 'team-b', { ...quota, max_jobs: 1 });
  await s.store.putQuota('team-b', quota);
  await putDatasetDocument(s.objects, { ...dataset, name: 'an earlier name' });
  const kept = await create(s);
  const claim = await s.store.claimAttempt(kept.id, 1, 'worker', LEASE_MS);
  if (!claim.granted) throw new Error(claim.code);
  await checkpoint(s, kept, claim.execution, 10);
  const before = await jobOf(s, kept.id);
  const failOver = await s.redis.leaveReplicaBehind();
  const later = { ...testDataset(), name: 'later' };
  await putDatasetDocument(s.objects, later);
  await s.store.putDataset(later);
  const missed = await create(s, { data: { dataset: later.id } });
  await checkpoint(s, missed, '1-a', 20, false);
  await failOver();

  const { found } = await run(s);
  t.match(found, { datasets: 1, jobs: { queued: 1 }, checkpoints: 1, untouched: 1 });
  t.match(await jobOf(s, missed.id), {
    state: 'queued',
    reason: 'recovered',
    latest_checkpoint: { step: 20 },
  });
  t.same(await jobOf(s, kept.id), before);
  t.match(
    await s.store.renewLease(kept.id, claim.execution, LEASE_MS),
    { desired: 'run' },
    'the job continues',
  );
  t.same(await s.store.getDataset(dataset.id), dataset);
  t.same(await s.store.getDataset(later.id), later);
  t.same(await s.store.getQuota('team-b'), quota);
  t.equal(await s.store.readyForCollection(), 'ready');
  t.match((await run(s)).found, { datasets: 0, jobs: {}, checkpoints: 0, untouched: 2 }, 'once');
});

t.test('a job that is being deleted is not restored', async (t) => {
  const s = await stores(t);
  const { id } = await create(s);
  await putDesired(s.objects, await s.store.requestCancel(id));
  await s.store.deleteJob(id, { artifacts: true });
  t.match((await run(s)).found.jobs, {}, 'its objects still exist');
  t.equal(await s.store.getJob(id), null);
});

t.test('an idempotency key that has created another job since keeps that job', async (t) => {
  const s = await stores(t);
  const idempotency = { scope: 'POST /v1/jobs', key: 'once', body_hash: 'x' };
  const { ttl_ms: _, ...stored } = idempotencyEntry(idempotency);
  const spec = testSpec(dataset.id);
  const request = async () => {
    const id = `job_${ulid()}`;
    await putSpec(s.objects, { job_id: id, spec, idempotency: stored });
    await putAccepted(s.objects, (await s.store.createJob({ id, spec, idempotency })).job);
    return id;
  };
  const failOver = await s.redis.leaveReplicaBehind();
  const lost = await request();
  await failOver();
  const again = await request();
  t.match((await run(s)).found, { jobs: { queued: 1 }, untouched: 1 });
  t.ok(await s.store.getJob(lost));
  t.equal((await s.store.findCreated(idempotency))?.id, again);
});
