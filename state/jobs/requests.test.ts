/** Requests of users: creating, idempotency, listing, pausing, resuming, cancelling. */
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import type { Job } from '../../contracts/index.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { type JobStore, openJobStore } from '../job-store.js';
import { executionAt, noteExecutions } from '../testing/executions.js';
import { createTestJob, testDataset, testSpec } from '../testing/jobs.js';
import type { CreateJobInput } from './requests.js';

const LEASE_MS = 60_000;
const server = await startTestRedis();
t.teardown(() => server.stop());

/** Opens a separate store for each test, all on one server. */
async function freshStore(t: Test): Promise<JobStore> {
  const store = noteExecutions(await openJobStore({ url: server.url, prefix: `{${ulid()}}` }));
  t.teardown(() => store.close());
  return store;
}

t.test('a new job', async (t) => {
  const store = await freshStore(t);
  const job = await createTestJob(store, {
    labels: { team: 'a' },
    resources: { ranks: { preferred: 2, max: 3 } },
  });
  t.match(job, {
    name: 'test',
    state: 'queued',
    reason: null,
    state_version: 1,
    labels: { team: 'a' },
    attempt: 1,
    epoch: 0,
    requested_ranks: 2,
    world_size: null,
    progress: { step: 0, total_steps: 100, loss: null },
    latest_checkpoint: null,
    failure: null,
    export: null,
  });
  t.same(job.state_history, [{ state: 'queued', reason: null, at: job.created_at }]);
  t.same(await store.getJob(job.id), job, 'equals the reply to its creation');
  t.equal(await store.getJob('job_none'), null);
  const events = await store.readStream(job.id, null, 10);
  t.match(events, [{ seq: 1, kind: 'event', type: 'job.created' }]);
  t.equal(events.length, 1);
});

t.test('a job whose dataset does not exist', async (t) => {
  const store = await freshStore(t);
  const id = `job_${ulid()}`;
  await t.rejects(store.createJob({ id, spec: testSpec('ds_none') }), { code: 'dataset_not_found' });
  t.equal(await store.getJob(id), null);
  t.same((await store.listJobs()).data, []);
});

t.test('idempotency', async (t) => {
  const store = await freshStore(t);
  const dataset = testDataset();
  await store.putDataset(dataset);
  const request = (changes: Partial<CreateJobInput['idempotency']> = {}): CreateJobInput => ({
    id: `job_${ulid()}`,
    spec: testSpec(dataset.id),
    idempotency: { scope: 'key_1 POST /v1/jobs', key: 'abc', body_hash: 'h1', ...changes },
  });

  const first = await store.createJob(request());
  t.equal(first.replayed, false);
  await store.requestPause(first.job.id);
  const again = await store.createJob(request());
  t.equal(again.replayed, true);
  t.same(again.job, first.job, 'the first reply, though the job has changed since');
  await t.rejects(store.createJob(request({ body_hash: 'h2' })), { code: 'idempotency_key_reused' });
  t.equal((await store.listJobs()).data.length, 1, 'one job was created');

  t.equal(
    (await store.createJob(request({ scope: 'key_2 POST /v1/jobs' }))).replayed,
    false,
    'another owner',
  );
  t.equal((await store.createJob(request({ key: 'abd' }))).replayed, false, 'another key');
  // Scope and key are distinguished even when their concatenations are equal.
  t.equal((await store.createJob(request({ scope: 'key_1 POST /v1/job', key: 'sabc' }))).replayed, false);
  t.equal((await store.listJobs()).data.length, 4);
});

t.test('the same call twice, as after a lost reply', async (t) => {
  const store = await freshStore(t);
  const dataset = testDataset();
  await store.putDataset(dataset);
  const input = { id: `job_${ulid()}`, spec: testSpec(dataset.id) };
  const first = await store.createJob(input);
  const second = await store.createJob(input);
  t.equal(second.replayed, false);
  t.equal(second.job.id, first.job.id);
  t.equal((await store.readStream(input.id, null, 10)).length, 1, 'created once');
  const withKey = { ...input, id: `job_${ulid()}`, idempotency: { scope: 's', key: 'k', body_hash: 'h' } };
  await store.createJob(withKey);
  t.equal((await store.createJob(withKey)).replayed, false, 'the first reply is not a replay');
});

t.test('a race of equal requests makes one job', async (t) => {
  const store = await freshStore(t);
  const dataset = testDataset();
  await store.putDataset(dataset);
  const idempotency = { scope: 's', key: 'k', body_hash: 'h' };
  const results = await Promise.all(
    Array.from({ length: 16 }, () =>
      store.createJob({ id: `job_${ulid()}`, spec: testSpec(dataset.id), idempotency }),
    ),
  );
  t.equal(new Set(results.map(({ job }) => job.id)).size, 1);
  t.equal(results.filter(({ replayed }) => !replayed).length, 1);
  t.equal((await store.listJobs()).data.length, 1);
});

t.test('lists', async (t) => {
  const store = await freshStore(t);
  const jobs: Job[] = [];
  for (let i = 0; i < 7; i += 1) {
    jobs.push(await createTestJob(store, { labels: { parity: i % 2 ? 'odd' : 'even', 'a=b': 'c' } }));
  }
  const newestFirst = jobs
    .map(({ id }) => id)
    .sort()
    .reverse();
  const ids = (page: { data: Job[] }) => page.data.map(({ id }) => id);

  t.same(ids(await store.listJobs()), newestFirst);
  const first = await store.listJobs({ limit: 3 });
  const second = await store.listJobs({ limit: 3, after: first.next_cursor ?? '' });
  const third = await store.listJobs({ limit: 3, after: second.next_cursor ?? '' });
  t.same([...ids(first), ...ids(second), ...ids(third)], newestFirst, 'pages join without gap or repeat');
  t.equal(third.next_cursor, null);
  t.equal((await store.listJobs({ limit: 7 })).next_cursor, null, 'a full last page has no next page');

  await store.requestPause(jobs[1]?.id ?? '');
  await store.requestPause(jobs[2]?.id ?? '');
  t.same(ids(await store.listJobs({ state: ['paused'] })), [jobs[2]?.id, jobs[1]?.id].sort().reverse());
  t.equal((await store.listJobs({ state: ['queued'] })).data.length, 5);
  t.equal((await store.listJobs({ label: ['parity=odd'] })).data.length, 3);
  t.same(ids(await store.listJobs({ label: ['parity=odd'], state: ['paused'] })), [jobs[1]?.id]);
  t.equal((await store.listJobs({ label: ['a=b=c'] })).data.length, 7);
  t.same(await store.listJobs({ label: ['parity=none'] }), { data: [], next_cursor: null });
  const rare = await store.listJobs({ label: ['parity=odd'], state: ['queued'], limit: 1 });
  t.equal(rare.data.length, 1);
  t.not(rare.next_cursor, null, 'more entries follow the filtered ones');
  for (const limit of [0, 101, 1.5]) {
    await t.rejects(store.listJobs({ limit }), { code: 'invalid_parameter' }, String(limit));
  }
});

t.test('pausing and resuming a queued job', async (t) => {
  const store = await freshStore(t);
  const { id } = await createTestJob(store);
  const paused = await store.requestPause(id);
  t.match(paused, { state: 'paused', reason: 'user_request', attempt: 1 });
  t.ok(paused.state_version > 1);
  t.same(await store.requestPause(id), paused, 'idempotent');
  t.match(await store.claimAttempt(id, 1, 'w', LEASE_MS), { granted: false, code: 'job_paused' });

  const resumed = await store.resumeJob(id, { ranks: 3 });
  t.match(resumed, { state: 'queued', attempt: 2, requested_ranks: 3, epoch: 0 });
  await t.rejects(store.resumeJob(id), { code: 'invalid_state' });
  t.match(await store.claimAttempt(id, 1, 'w', LEASE_MS), { granted: false, code: 'attempt_superseded' });
  t.match(await store.claimAttempt(id, 2, 'w', LEASE_MS), { granted: true });
  await store.requestPause(id);
  await t.rejects(store.resumeJob(id), { code: 'invalid_state' }, 'refused while it is still pausing');
});

t.test(
  "a user's pause of an idle session is the user's, also if its worker pauses it first or later",
  async (t) => {
    const store = await freshStore(t);
    const first = await createTestJob(store);
    await store.claimAttempt(first.id, 1, 'w', LEASE_MS);
    const idle = await store.releaseAttempt(first.id, executionAt(first.id, 1), {
      to: 'paused',
      reason: 'idle',
    });
    t.match(idle, { state: 'paused', reason: 'idle' });
    const paused = await store.requestPause(first.id);
    t.match(paused, { state: 'paused', reason: 'user_request' });
    t.ok(paused.state_version > idle.state_version);
    t.same(await store.requestPause(first.id), paused, 'idempotent');

    const { id } = await createTestJob(store);
    await store.claimAttempt(id, 1, 'w', LEASE_MS);
    await store.countCalls(id, { appended: 1, answered: 0, is_finished: false, bytes: 1 });
    await store.requestPause(id);
    t.match(await store.releaseAttempt(id, executionAt(id, 1), { to: 'paused', reason: 'idle' }), {
      state: 'paused',
      reason: 'user_request',
    });
  },
);

t.test('a running job is asked to stop; its worker changes the state', async (t) => {
  const store = await freshStore(t);
  const { id } = await createTestJob(store);
  await store.claimAttempt(id, 1, 'w', LEASE_MS);
  await store.transition(id, executionAt(id, 1), 'starting');
  const pausing = await store.requestPause(id);
  t.match(pausing, { state: 'pausing', reason: 'user_request' });
  t.match(await store.renewLease(id, executionAt(id, 1), LEASE_MS), {
    desired: 'pause',
    state: 'pausing',
  });
  t.match(
    await store.transition(id, executionAt(id, 1), 'running'),
    { state: 'pausing' },
    'the request takes precedence over its progress',
  );
  t.match(
    await store.requestPause(id),
    { state: 'pausing', state_version: pausing.state_version },
    'idempotent',
  );

  const cancelling = await store.requestCancel(id);
  t.match(cancelling, { state: 'cancelling' });
  t.ok(cancelling.state_version > pausing.state_version);
  t.match(await store.renewLease(id, executionAt(id, 1), LEASE_MS), { desired: 'cancel' });
  await t.rejects(store.requestPause(id), { code: 'invalid_state' }, 'a cancel can not be undone');
  t.match(await store.requestCancel(id), { state_version: cancelling.state_version });
  t.match(await store.finishJob(id, executionAt(id, 1), 'cancelled', { reason: 'user_request' }), {
    state: 'cancelled',
  });
});

t.test('cancelling a job that no worker holds is done at once', async (t) => {
  const store = await freshStore(t);
  const queued = await createTestJob(store);
  t.match(await store.requestCancel(queued.id), { state: 'cancelled', reason: 'user_request' });
  const paused = await createTestJob(store);
  await store.requestPause(paused.id);
  t.match(await store.requestCancel(paused.id), { state: 'cancelled' });
  for (const call of [
    () => store.requestCancel(paused.id),
    () => store.requestPause(paused.id),
    () => store.resumeJob(paused.id),
  ]) {
    await t.rejects(call(), { code: 'job_final' });
  }
  t.match(await store.claimAttempt(paused.id, 1, 'w', LEASE_MS), { granted: false, code: 'job_final' });
});

t.test('cancelling while a worker claims the job: exactly one of the two happens', async (t) => {
  const store = await freshStore(t);
  for (let round = 0; round < 30; round += 1) {
    const { id } = await createTestJob(store);
    const [claim, cancelled] = await Promise.all([
      store.claimAttempt(id, 1, 'w', LEASE_MS),
      store.requestCancel(id),
    ]);
    t.equal(cancelled.state, claim.granted ? 'cancelling' : 'cancelled');
  }
});

t.test('unknown jobs', async (t) => {
  const store = await freshStore(t);
  const calls: (() => Promise<unknown>)[] = [
    () => store.requestPause('job_x'),
    () => store.requestCancel('job_x'),
    () => store.resumeJob('job_x'),
    () => store.listCheckpoints('job_x'),
    () => store.finishJob('job_x', null, 'failed'),
    () => store.renewLease('job_x', executionAt('job_x', 1), LEASE_MS),
  ];
  for (const call of calls) await t.rejects(call, { code: 'job_not_found' });
  t.same(await store.readStream('job_x', null, 10), []);
});
