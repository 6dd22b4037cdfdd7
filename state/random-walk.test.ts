/** The invariants of the job's record hold after every call, for random sequences of calls by users and workers. */
import fc from 'fast-check';
import t from 'tap';
import { ulid } from 'ulid';
import { canTransition, isFinal, type Job, ZerofleetError } from '../contracts/index.js';
import { startTestRedis } from '../platform/testing/redis.js';
import { type JobStore, openJobStore } from './job-store.js';
import { executionAt, noteExecutions } from './testing/executions.js';
import { createTestJob } from './testing/jobs.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

const worker = fc.constantFrom('a', 'b');
const epoch = fc.integer({ min: 0, max: 4 });
const workingState = fc.constantFrom(
  'provisioning',
  'starting',
  'running',
  'recovering',
  'pausing',
  'cancelling',
);

type Step = (store: JobStore, id: string) => Promise<unknown>;

/** A random call, valid or not: old epochs, wrong attempts, forbidden transitions. */
const step: fc.Arbitrary<{ name: string; run: Step }> = fc.oneof(
  fc.constant<{ name: string; run: Step }>({ name: 'pause', run: (store, id) => store.requestPause(id) }),
  fc.constant<{ name: string; run: Step }>({ name: 'cancel', run: (store, id) => store.requestCancel(id) }),
  fc.constant<{ name: string; run: Step }>({ name: 'resume', run: (store, id) => store.resumeJob(id) }),
  fc.constant<{ name: string; run: Step }>({ name: 'requeue', run: (store) => store.requeueAbandoned(0) }),
  fc
    .tuple(fc.integer({ min: 1, max: 3 }), worker, fc.constantFrom(1, 60_000))
    .map(([attempt, who, lease]) => ({
      name: `claim ${attempt} by ${who} for ${lease} ms`,
      run: (store: JobStore, id: string) => store.claimAttempt(id, attempt, who, lease),
    })),
  fc.tuple(epoch, workingState).map(([e, to]) => ({
    name: `${e}: to ${to}`,
    run: (store: JobStore, id: string) => store.transition(id, executionAt(id, e), to as 'running'),
  })),
  fc.tuple(epoch, fc.constantFrom('queued' as const, 'paused' as const)).map(([e, to]) => ({
    name: `${e}: release to ${to}`,
    run: (store: JobStore, id: string) => store.releaseAttempt(id, executionAt(id, e), { to }),
  })),
  fc.tuple(fc.option(epoch), fc.constantFrom('succeeded' as const, 'failed' as const)).map(([e, to]) => ({
    name: `${e}: finish as ${to}`,
    run: (store: JobStore, id: string) => store.finishJob(id, e === null ? null : executionAt(id, e), to),
  })),
  epoch.map((e) => ({
    name: `${e}: event`,
    run: (store: JobStore, id: string) => store.appendEvent(id, executionAt(id, e), { type: 'test.event' }),
  })),
);

function check(before: Job, after: Job): void {
  if (isFinal(before.state)) {
    if (JSON.stringify(before) !== JSON.stringify(after)) throw new Error('a job changed after its end');
    return;
  }
  const moves = after.state_history.slice(before.state_history.length - 1);
  for (const [i, { state }] of moves.slice(1).entries()) {
    const from = (moves[i] as (typeof moves)[number]).state;
    if (!canTransition(from, state)) throw new Error(`went from ${from} to ${state}`);
  }
  const last = after.state_history.at(-1);
  if (last?.state !== after.state) throw new Error('the history does not end with the state');
  // Requests to the job also change its version.
  if (after.state_version < after.state_history.length || after.state_version < before.state_version)
    throw new Error('the version does not count the changes');
  if (after.state !== before.state && after.state_version === before.state_version)
    throw new Error('a change of the state without a new version');
  if (after.epoch < before.epoch || after.attempt < before.attempt)
    throw new Error('an epoch or attempt went back');
}

t.test('invariants of the record', async (t) => {
  const store = noteExecutions(await openJobStore({ url: server.url, prefix: `{${ulid()}}` }));
  t.teardown(() => store.close());
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const { id } = await createTestJob(store);
      for (const { run } of steps) {
        const before = (await store.getJob(id)) as Job;
        await run(store, id).catch((error: unknown) => {
          if (!(error instanceof ZerofleetError) || error.code === 'internal_error') throw error;
        });
        check(before, (await store.getJob(id)) as Job);
      }
      const seqs = (await store.readStream(id, null, 10_000)).map(({ seq }) => seq);
      if (seqs.some((seq, i) => seq !== i + 1)) throw new Error('the stream has a gap');
      const state = (await store.getJob(id))?.state;
      const listed = await store.listJobs({ state: [state as Job['state']], limit: 100 });
      if (!listed.data.some((job) => job.id === id))
        throw new Error('the index of states does not have the job');
    }),
    { numRuns: 80 },
  );
  t.pass('hold');
});
