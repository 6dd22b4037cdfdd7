import { hostname } from 'node:os';
import t from 'tap';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet, type FleetOptions } from '../../testing/fleet.js';

const HOUR_MS = 3_600_000;

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

async function fleet(
  t: { teardown(end: () => Promise<void>): void },
  options: FleetOptions = {},
): Promise<Fleet> {
  const started = await Fleet.start(options);
  t.teardown(() => started.close());
  return started;
}

for (const fault of ['kill', 'exit', 'hang'] as const) {
  t.test(`a rank's ${fault} costs one error and no committed step`, async (t) => {
    const f = await fleet(t, {
      ranks: { slow: { from: 6, ms: HOUR_MS }, faults: [{ rank: 1, step: 10, kind: fault }] },
    });
    // On a starved machine a rank that starts is silent for seconds.
    await f.agent(4, fault === 'hang' ? { silence_ms: 12_000 } : {});
    const id = await f.submit({ steps: 12, every_steps: 5, ranks: 2, max_errors: 1 });
    await f.until(id, ({ latest_checkpoint }) => latest_checkpoint?.step === 5);
    await f.speedUp();
    const job = await f.untilState(id, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 12));
    t.equal(job.epoch, 1);
    t.ok(job.lost_work_seconds > 0);
    t.match(job.state_history.map(({ state }) => state).slice(3), [
      'running',
      'recovering',
      'starting',
      'running',
      'succeeded',
    ]);
    t.strictSame(
      await f.steps(id),
      [...upTo(9), ...upTo(12).slice(5)],
      'only steps without a checkpoint were repeated',
    );
    const events = await f.events(id);
    const code = fault === 'hang' ? 'rank_unresponsive' : 'rank_lost';
    t.match(events.find(({ type }) => type === 'rank.lost')?.data, {
      rank: 1,
      code,
      host: hostname(),
      exit_code: fault === 'exit' ? 3 : null,
      signal: fault === 'kill' ? 'SIGKILL' : null,
    });
  });
}

t.test('an error beyond the limit fails the job and names the cause', async (t) => {
  const faults = [1, 2, 3].map((step) => ({ rank: 0, step, kind: 'kill' as const }));
  const f = await fleet(t, { ranks: { faults } });
  await f.agent();
  const id = await f.submit({ max_errors: 2 });
  const job = await f.untilState(id, 'failed');
  t.match(job.failure, {
    category: 'hardware',
    code: 'rank_lost',
    rank: 0,
    retryable: true,
    message: /SIGKILL/,
  });
});

t.test('a new checkpoint resets the error budget', async (t) => {
  const faults = [5, 11, 17].map((step) => ({ rank: 0, step, kind: 'kill' as const }));
  const f = await fleet(t, { ranks: { slow: { from: 4, ms: HOUR_MS }, faults } });
  await f.agent();
  const id = await f.submit({ steps: 20, every_steps: 3, max_errors: 1 });
  for (const [saved, next] of [
    [3, 10],
    [9, 16],
    [15, 21],
  ] as const) {
    await f.until(id, ({ latest_checkpoint }) => latest_checkpoint?.step === saved);
    await f.speedUp(next);
  }
  t.equal((await f.untilState(id, 'succeeded')).export?.state_digest, fakeStateDigest(1, 20));
});

t.test('a deterministic error is not retried', async (t) => {
  const f = await fleet(t, { ranks: { faults: [{ rank: 1, step: 3, kind: 'throw' }] } });
  await f.agent();
  const id = await f.submit({ ranks: 2, max_errors: 5 });
  const job = await f.untilState(id, 'failed');
  t.match(job.failure, { category: 'oom', code: 'out_of_memory', rank: 1, step: 2, retryable: false });
  t.notOk(job.state_history.some(({ state }) => state === 'recovering'));
});

t.test('a user error is not retried', async (t) => {
  const f = await fleet(t, { ranks: { faults: [{ rank: 0, step: 3, kind: 'misfit' }] } });
  await f.agent();
  const id = await f.submit({ max_errors: 5 });
  const job = await f.untilState(id, 'failed');
  t.match(job.failure, { category: 'user', code: 'checkpoint_mismatch', retryable: false });
  t.match(job, { attempt: 1, epoch: 1 });
  t.notOk(job.state_history.some(({ state }) => state === 'recovering'));
});

t.test('a training that diverged is not retried, and no rank is the root cause', async (t) => {
  const faults = [0, 1].map((rank) => ({ rank, step: 7, kind: 'diverge' as const }));
  const f = await fleet(t, { ranks: { faults } });
  await f.agent();
  const id = await f.submit({ ranks: 2, max_errors: 5 });
  const job = await f.untilState(id, 'failed');
  t.match(job.failure, {
    category: 'diverged',
    code: 'diverged',
    rank: null,
    step: 6,
    retryable: false,
    message: /^step 7: as the test asked\. .* Lower train\.optimizer\.lr/,
  });
  t.notOk(job.state_history.some(({ state }) => state === 'recovering'));
  const types = (await f.events(id)).map(({ type }) => type);
  t.ok(types.includes('attempt.error') && !types.includes('rank.lost'), types.join(' '));
});

t.test('a damaged dataset fails the job', async (t) => {
  const f = await fleet(t);
  await f.objects.put(`datasets/${f.datasetId}/text`, Buffer.from('other text'));
  await f.agent();
  const job = await f.untilState(await f.submit(), 'failed');
  t.match(job.failure, { category: 'data', code: 'dataset_corrupt' });
  t.notOk(
    job.state_history.some(({ state }) => state === 'recovering'),
    'without a retry',
  );
});
