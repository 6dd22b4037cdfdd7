import t from 'tap';
import { fakeStateDigest } from '../testing/fake-core.js';
import { Fleet, type FleetOptions } from '../testing/fleet.js';

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

async function fleet(
  t: { teardown(end: () => Promise<void>): void },
  options: FleetOptions = {},
): Promise<Fleet> {
  const started = await Fleet.start(options);
  t.teardown(() => started.close());
  return started;
}

t.test('a job trains, saves, exports and succeeds', async (t) => {
  const f = await fleet(t);
  await f.agent();
  const id = await f.submit({ steps: 12, every_steps: 5, ranks: 2 });
  const job = await f.untilState(id, 'succeeded');
  const state_digest = fakeStateDigest(1, 12);
  t.match(job, {
    reason: 'completed',
    epoch: 1,
    world_size: null,
    lost_work_seconds: 0,
    failure: null,
    progress: { step: 12, total_steps: 12, percent: 100 },
    latest_checkpoint: { step: 12, state_digest },
    export: { state_digest, files: [{ name: 'config.json' }, { name: 'model.safetensors' }] },
  });
  t.strictSame(
    job.state_history.map(({ state }) => state),
    ['queued', 'provisioning', 'starting', 'running', 'succeeded'],
  );
  t.strictSame(await f.steps(id), upTo(12));
  const { data } = await f.store.listCheckpoints(id);
  t.strictSame(
    data.map(({ step, world_size }) => ({ step, world_size })),
    [12, 10, 5].map((step) => ({ step, world_size: 2 })),
  );
  const result = JSON.parse(String(await f.objects.get(`jobs/${id}/result.json`)));
  t.match(result, { job_id: id, state: 'succeeded', step: 12, state_digest, export: job.export });
});

t.test('paused on two ranks and resumed on three, it ends with the same bits', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 20 } });
  await f.agent();
  const id = await f.submit({ steps: 60, every_steps: 1000, ranks: 2 });
  await f.until(id, (job) => job.progress.step >= 5);
  await f.store.requestPause(id);
  const paused = await f.untilState(id, 'paused');
  t.ok(paused.progress.step < 60);
  t.equal(paused.latest_checkpoint?.step, paused.progress.step, 'the step of the pause is saved');
  t.equal(paused.latest_checkpoint?.state_digest, fakeStateDigest(1, paused.progress.step));

  await f.store.resumeJob(id, { ranks: 3 });
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 60));
  t.strictSame(
    { attempt: job.attempt, epoch: job.epoch, lost: job.lost_work_seconds },
    { attempt: 2, epoch: 2, lost: 0 },
  );
  t.strictSame(await f.steps(id), upTo(60), 'no step was done twice');
  const [last] = (await f.store.listCheckpoints(id)).data;
  t.equal(last?.world_size, 3);
});

for (const what of ['kill', 'exit', 'hang'] as const) {
  t.test(`a rank's ${what} costs one error and no committed step`, async (t) => {
    const f = await fleet(t, { ranks: { step_ms: 40, faults: [{ rank: 1, step: 10, what }] } });
    await f.agent();
    const id = await f.submit({ steps: 12, every_steps: 5, ranks: 3, max_errors: 1 });
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
      'only what no checkpoint held was repeated',
    );
    const events = await f.events(id);
    const code = what === 'hang' ? 'rank_unresponsive' : 'rank_lost';
    t.match(events.find(({ type }) => type === 'rank.lost')?.data, { rank: 1, code });
  });
}

t.test('one error too many fails the job and says which it was', async (t) => {
  const faults = [1, 2, 3].map((step) => ({ rank: 0, step, what: 'kill' as const }));
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

t.test('a new checkpoint gives the error budget back', async (t) => {
  const faults = [5, 11, 17].map((step) => ({ rank: 0, step, what: 'kill' as const }));
  const f = await fleet(t, { ranks: { step_ms: 40, faults } });
  await f.agent();
  const id = await f.submit({ steps: 20, every_steps: 3, max_errors: 1 });
  t.equal((await f.untilState(id, 'succeeded')).export?.state_digest, fakeStateDigest(1, 20));
});

t.test('an error that would come again is not tried again', async (t) => {
  const f = await fleet(t, { ranks: { faults: [{ rank: 1, step: 3, what: 'throw' }] } });
  await f.agent();
  const id = await f.submit({ ranks: 2, max_errors: 5 });
  const job = await f.untilState(id, 'failed');
  t.match(job.failure, { category: 'oom', code: 'out_of_memory', rank: 1, step: 2, retryable: false });
  t.notOk(job.state_history.some(({ state }) => state === 'recovering'));
});

t.test('a dataset that was damaged fails the job', async (t) => {
  const f = await fleet(t);
  await f.objects.put(`datasets/${f.dataset_id}/text`, Buffer.from('other text'));
  await f.agent();
  const job = await f.untilState(await f.submit(), 'failed');
  t.match(job.failure, { category: 'data', code: 'dataset_corrupt' });
});

t.test('cancelled, the ranks stop and what was saved stays', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 20 } });
  await f.agent();
  const id = await f.submit({ steps: 10_000, every_steps: 5, ranks: 2 });
  await f.until(id, (job) => job.latest_checkpoint !== null);
  await f.store.requestCancel(id);
  const job = await f.untilState(id, 'cancelled');
  t.match(job, { export: null, failure: null, world_size: null });
  t.ok((await f.store.listCheckpoints(id)).data.length > 0);
});

t.test('an agent that drains hands the job back with everything saved', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 20 } });
  const first = await f.agent();
  const id = await f.submit({ steps: 60, every_steps: 1000, ranks: 2, max_errors: 0 });
  await f.until(id, (job) => job.progress.step >= 5);
  await first.close();
  const handed = await f.store.getJob(id);
  t.match(handed, { state: 'queued', reason: 'worker_draining', attempt: 2 });
  t.equal(handed?.latest_checkpoint?.step, handed?.progress.step);
  await f.agent();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 60));
  t.strictSame(await f.steps(id), upTo(60));
});

t.test('an agent that is killed is followed by another one, and takes its ranks with it', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 20 } });
  const first = await f.agentProcess();
  const id = await f.submit({ steps: 80, every_steps: 5, ranks: 2, max_errors: 0 });
  const before = await f.until(id, (job) => (job.latest_checkpoint?.step ?? 0) >= 10);
  first.kill('SIGKILL');
  await f.agent();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 80));
  t.ok(job.epoch > before.epoch);
  t.ok(job.state_history.some(({ state }) => state === 'recovering'));
});

t.test('a job that needs more ranks than are free waits, and two jobs share a machine', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 5 } });
  await f.agent(2);
  const ids = [await f.submit({ ranks: 2 }), await f.submit({ ranks: 1 }), await f.submit({ ranks: 1 })];
  for (const id of ids) await f.untilState(id, 'succeeded');
  t.pass('all of them came to their turn');
});
