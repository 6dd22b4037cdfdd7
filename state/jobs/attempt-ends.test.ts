import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { startTestRedis } from '../../platform/testing/redis.js';
import { FAILURE, freshStore, granted, LEASE_MS } from '../testing/attempts.js';
import { executionAt } from '../testing/executions.js';
import { createTestJob } from '../testing/jobs.js';
import { testCheckpoint, workerWrites } from '../testing/worker-writes.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

t.test('finishing without an execution is for jobs that no worker holds', async (t) => {
  const store = await freshStore(t, server);
  const running = await createTestJob(store);
  granted(await store.claimAttempt(running.id, 1, 'a', LEASE_MS));
  await t.rejects(store.finishJob(running.id, null, 'failed'), { code: 'invalid_state' });
  const queued = await createTestJob(store);
  t.match(await store.finishJob(queued.id, null, 'failed', { failure: FAILURE }), {
    state: 'failed',
    failure: FAILURE,
  });
  const other = await createTestJob(store);
  await t.rejects(store.finishJob(other.id, null, 'succeeded'), { code: 'invalid_transition' });
});

t.test('releasing an attempt', async (t) => {
  const store = await freshStore(t, server);
  const { id } = await createTestJob(store);
  granted(await store.claimAttempt(id, 1, 'a', LEASE_MS));
  const released = await store.releaseAttempt(id, executionAt(id, 1), {
    to: 'queued',
    reason: 'worker_draining',
  });
  t.match(released, { state: 'queued', reason: 'worker_draining', attempt: 2, epoch: 1, world_size: null });
  t.same(
    await store.releaseAttempt(id, executionAt(id, 1), { to: 'queued' }),
    released,
    'repeating it changes nothing',
  );
  const { releaseAttempt: _, ...writes } = workerWrites(store, id, executionAt(id, 1));
  for (const [name, write] of Object.entries(writes)) await t.rejects(write(), { code: 'stale_epoch' }, name);

  t.match(await store.claimAttempt(id, 1, 'a', LEASE_MS), { code: 'attempt_superseded' });
  t.equal(granted(await store.claimAttempt(id, 2, 'b', LEASE_MS)).job.epoch, 2);
  await t.rejects(
    store.releaseAttempt(id, executionAt(id, 1), { to: 'queued' }),
    { code: 'stale_epoch' },
    'another worker holds it now',
  );
});

t.test('releasing a job with a pending pause or cancel', async (t) => {
  const store = await freshStore(t, server);
  for (const to of ['queued', 'paused'] as const) {
    const { id } = await createTestJob(store);
    granted(await store.claimAttempt(id, 1, 'a', LEASE_MS));
    await store.requestPause(id);
    t.match(
      await store.releaseAttempt(id, executionAt(id, 1), { to }),
      { state: 'paused', attempt: 1 },
      `pause, then ${to}`,
    );
    t.match(await store.resumeJob(id), { state: 'queued', attempt: 2 });
    t.match(
      granted(await store.claimAttempt(id, 2, 'a', LEASE_MS)).control,
      { desired: 'run' },
      'the request is cleared',
    );
  }
  for (const to of ['queued', 'paused'] as const) {
    const { id } = await createTestJob(store);
    granted(await store.claimAttempt(id, 1, 'a', LEASE_MS));
    await store.requestPause(id);
    await store.requestCancel(id);
    const ended = { state: 'cancelled', reason: 'user_request', attempt: 1 };
    t.match(await store.releaseAttempt(id, executionAt(id, 1), { to }), ended, `cancel, then ${to}`);
    await t.rejects(store.releaseAttempt(id, executionAt(id, 1), { to }), { code: 'job_final' });
  }
});

t.test('a job that is cancelled ends with its worker, even without another worker', async (t) => {
  const store = await freshStore(t, server);
  const { id } = await createTestJob(store);
  granted(await store.claimAttempt(id, 1, 'a', 1));
  await store.requestCancel(id);
  while ((await store.requeueAbandoned(0)).length === 0);
  t.match(await store.getJob(id), { state: 'cancelled', reason: 'user_request', attempt: 1 });
  await t.rejects(store.renewLease(id, executionAt(id, 1), LEASE_MS), { code: 'job_final' });
});

t.test('lost workers are counted until there is a new checkpoint or a user queues the job', async (t) => {
  const store = await freshStore(t, server);
  const { id } = await createTestJob(store);
  let workers = 0;
  const claim = async (attempt: number, leaseMs = 1) => {
    for (;;) {
      const claimed = await store.claimAttempt(id, attempt, `w${workers++}`, leaseMs);
      if (claimed.granted) return claimed;
    }
  };
  t.equal((await claim(1)).lost_workers, 0);
  t.equal((await claim(1)).lost_workers, 1, 'another worker claims after the lease has expired');
  while ((await store.requeueAbandoned(0)).length === 0);
  const third = await claim(2, LEASE_MS);
  t.equal(third.lost_workers, 2, 'or the job is requeued first');
  await store.releaseAttempt(id, third.execution, { to: 'queued', reason: 'node_lost' });
  const fourth = await claim(3, LEASE_MS);
  t.equal(fourth.lost_workers, 3, 'a worker with some of its ranks');
  await store.releaseAttempt(id, fourth.execution, { to: 'queued', reason: 'worker_draining' });
  const fifth = await claim(4, LEASE_MS);
  t.equal(fifth.lost_workers, 3, 'a worker that leaves is not lost');
  await store.commitCheckpoint(id, fifth.execution, testCheckpoint(id, 5));
  t.equal(
    ((await store.claimAttempt(id, 4, `w${workers - 1}`, 1)) as { lost_workers: number }).lost_workers,
    0,
  );
  t.equal((await claim(4, LEASE_MS)).lost_workers, 1);
  await store.requestPause(id);
  await store.releaseAttempt(id, executionAt(id, (await store.getJob(id))?.epoch ?? 0), { to: 'paused' });
  await store.resumeJob(id);
  t.equal((await claim(5)).lost_workers, 0);
});

t.test('abandoned jobs are queued again', async (t) => {
  const store = await freshStore(t, server);
  const healthy = await createTestJob(store);
  granted(await store.claimAttempt(healthy.id, 1, 'a', LEASE_MS));
  const lost = await createTestJob(store);
  granted(await store.claimAttempt(lost.id, 1, 'b', 10));
  await sleep(20);
  t.same(await store.requeueAbandoned(60_000), [], 'not within the grace period');
  const [first, second] = await Promise.all([store.requeueAbandoned(0), store.requeueAbandoned(0)]);
  t.same([...first, ...second], [lost.id], 'once, for any caller');
  t.match(await store.getJob(lost.id), { state: 'queued', reason: 'heartbeat_lost', attempt: 2 });
  t.match(await store.getJob(healthy.id), { state: 'provisioning' });
  await t.rejects(
    store.renewLease(lost.id, executionAt(lost.id, 1), LEASE_MS),
    { code: 'stale_epoch' },
    'its worker is too late',
  );
});
