/** Leases, epochs, fencing, and a worker's changes of the state. */

import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { startTestRedis } from '../../platform/testing/redis.js';
import { FAILURE, freshStore, granted, LEASE_MS } from '../testing/attempts.js';
import { executionAt } from '../testing/executions.js';
import { createTestJob } from '../testing/jobs.js';
import { workerWrites } from '../testing/worker-writes.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

t.test('one of many claims is granted', async (t) => {
  const store = await freshStore(t, server);
  const others = await Promise.all([1, 2, 3].map(() => freshStore(t, server)));
  t.equal(others.length, 3);
  const { id } = await createTestJob(store);
  const workers = Array.from({ length: 12 }, (_, i) => `worker-${i}`);
  const claims = await Promise.all(workers.map((worker) => store.claimAttempt(id, 1, worker, LEASE_MS)));
  const winners = claims.filter((claim) => claim.granted);
  t.equal(winners.length, 1);
  t.match(winners[0], {
    job: { state: 'provisioning', epoch: 1 },
    control: { desired: 'run' },
    error_count: 0,
  });
  for (const claim of claims.filter((claim) => !claim.granted)) {
    t.match(claim, { code: 'lease_held' });
    t.ok(!claim.granted && claim.retry_after_ms > 0 && claim.retry_after_ms <= LEASE_MS);
  }
  t.match(await store.readStream(id, null, 10, ['event']), [
    { type: 'job.created' },
    { type: 'attempt.started', data: { attempt: 1, epoch: 1 } },
    { type: 'job.state', data: { from: 'queued', to: 'provisioning' } },
  ]);
});

t.test('an expired lease lets another worker claim the job, and fences the first one', async (t) => {
  const store = await freshStore(t, server);
  const { id } = await createTestJob(store);
  granted(await store.claimAttempt(id, 1, 'a', 30));
  await store.transition(id, executionAt(id, 1), 'starting');
  await store.transition(id, executionAt(id, 1), 'running', { patch: { world_size: 2 } });
  await sleep(40);
  t.match(
    await store.renewLease(id, executionAt(id, 1), 30),
    { desired: 'run' },
    'no other worker claimed it: the lease is renewed',
  );
  await sleep(40);
  const second = granted(await store.claimAttempt(id, 1, 'b', LEASE_MS));
  t.match(second, { job: { epoch: 2, state: 'recovering', reason: 'worker_lost', world_size: null } });

  const before = await store.getJob(id);
  const stream = await store.readStream(id, null, 100);
  for (const [name, write] of Object.entries(workerWrites(store, id, executionAt(id, 1)))) {
    await t.rejects(write(), { code: 'stale_epoch' }, name);
  }
  for (const [name, write] of Object.entries(workerWrites(store, id, executionAt(id, 3)))) {
    await t.rejects(write(), { code: 'stale_epoch' }, `${name} of an epoch that never existed`);
  }
  t.same(await store.getJob(id), before, 'no field has changed');
  t.same(await store.readStream(id, null, 100), stream);
});

t.test('the same worker may claim again, as after a blocked event loop', async (t) => {
  const store = await freshStore(t, server);
  const { id } = await createTestJob(store);
  granted(await store.claimAttempt(id, 1, 'a', LEASE_MS));
  t.equal(granted(await store.claimAttempt(id, 1, 'a', LEASE_MS)).job.epoch, 2);
  await t.rejects(
    store.renewLease(id, executionAt(id, 1), LEASE_MS),
    { code: 'stale_epoch' },
    'its previous execution is fenced',
  );
});

t.test('transitions follow the state table', async (t) => {
  const store = await freshStore(t, server);
  const { id } = await createTestJob(store);
  granted(await store.claimAttempt(id, 1, 'a', LEASE_MS));
  await t.rejects(
    store.transition(id, executionAt(id, 1), 'running'),
    { code: 'invalid_transition' },
    'provisioning to running',
  );
  const starting = await store.transition(id, executionAt(id, 1), 'starting', {
    reason: 'world_sealed',
    patch: { world_size: 2, lost_work_seconds: 1.5, error_count: 2 },
  });
  t.match(starting, { state: 'starting', reason: 'world_sealed', world_size: 2, lost_work_seconds: 1.5 });
  const again = await store.transition(id, executionAt(id, 1), 'starting', {
    reason: 'still',
    patch: { world_size: 3 },
  });
  t.match(
    again,
    { reason: 'still', world_size: 3, state_version: starting.state_version },
    'no change of state',
  );
  t.match(await store.transition(id, executionAt(id, 1), 'running'), {
    state: 'running',
    reason: null,
    world_size: 3,
  });
  // @ts-expect-error a final state is not accepted by the type either
  await t.rejects(store.transition(id, 1, 'failed'), { code: 'invalid_transition' });

  t.same(
    (await store.getJob(id))?.state_history.map(({ state }) => state),
    ['queued', 'provisioning', 'starting', 'running'],
  );
  await sleep(0);
  t.equal(
    granted(await store.claimAttempt(id, 1, 'a', LEASE_MS)).error_count,
    2,
    'the next epoch inherits the budget',
  );
});

t.test('a final state never changes', async (t) => {
  const store = await freshStore(t, server);
  for (const state of ['succeeded', 'failed', 'cancelled'] as const) {
    const { id } = await createTestJob(store);
    granted(await store.claimAttempt(id, 1, 'a', LEASE_MS));
    await store.transition(id, executionAt(id, 1), 'starting');
    await store.transition(id, executionAt(id, 1), 'running');
    if (state === 'cancelled') await store.requestCancel(id);
    const exported = {
      checkpoint_id: 'ckpt_x',
      step: 1,
      prefix: 'jobs/x/exports/1',
      state_digest: '0'.repeat(32),
      files: [],
    };
    const options = state === 'failed' ? { failure: FAILURE } : { export: exported };
    const done = await store.finishJob(id, executionAt(id, 1), state, { reason: 'because', ...options });
    t.match(done, {
      state,
      reason: 'because',
      failure: state === 'failed' ? FAILURE : null,
      world_size: null,
    });
    t.same(
      await store.finishJob(id, executionAt(id, 1), state, { reason: 'again' }),
      done,
      'repeating it changes nothing',
    );

    const other = state === 'failed' ? 'succeeded' : 'failed';
    const { finishJob: _, ...writes } = workerWrites(store, id, executionAt(id, 1));
    for (const [name, write] of Object.entries(writes)) await t.rejects(write(), { code: 'job_final' }, name);
    await t.rejects(store.finishJob(id, executionAt(id, 1), other), { code: 'job_final' });
    await t.rejects(store.finishJob(id, null, other), { code: 'job_final' });
    await t.rejects(store.requestCancel(id), { code: 'job_final' });
    await t.rejects(store.resumeJob(id), { code: 'job_final' });
    t.match(await store.claimAttempt(id, 1, 'b', LEASE_MS), { granted: false, code: 'job_final' });
    t.same(await store.requeueAbandoned(0), []);
    t.same(await store.getJob(id), done);
  }
});
