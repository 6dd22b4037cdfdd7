import t from 'tap';
import { fakeStateDigest } from '../testing/fake-state.js';
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
  const stateDigest = fakeStateDigest(1, 12);
  t.match(job, {
    reason: 'completed',
    epoch: 1,
    world_size: null,
    lost_work_seconds: 0,
    failure: null,
    progress: { step: 12, total_steps: 12, percent: 100 },
    latest_checkpoint: { step: 12, state_digest: stateDigest },
    export: { state_digest: stateDigest, files: [{ name: 'config.json' }, { name: 'model.safetensors' }] },
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
  for (const { memory_bytes } of await f.metrics(id)) t.ok(memory_bytes > 2 ** 20, `${memory_bytes} bytes`);
  const result = JSON.parse(String(await f.objects.get(`jobs/${id}/result.json`)));
  t.match(result, {
    job_id: id,
    state: 'succeeded',
    step: 12,
    state_digest: stateDigest,
    export: job.export,
  });
});

t.test('a job paused on two ranks and resumed on three ends with the same bits', async (t) => {
  const f = await fleet(t, { ranks: { slow: { from: 6, ms: 300 } } });
  await f.agent();
  const id = await f.submit({ steps: 60, every_steps: 1000, ranks: 2 });
  await f.until(id, (job) => job.progress.step >= 5);
  await f.store.requestPause(id);
  const paused = await f.untilState(id, 'paused');
  t.ok(paused.progress.step < 60);
  t.equal(paused.latest_checkpoint?.step, paused.progress.step, 'the step of the pause has a checkpoint');
  t.equal(paused.latest_checkpoint?.state_digest, fakeStateDigest(1, paused.progress.step));

  await f.speedUp();
  await f.store.resumeJob(id, { ranks: 3 });
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 60));
  t.strictSame(
    { attempt: job.attempt, epoch: job.epoch, lost: job.lost_work_seconds },
    { attempt: 2, epoch: 2, lost: 0 },
  );
  t.strictSame(await f.steps(id), upTo(60), 'no step was repeated');
  const [last] = (await f.store.listCheckpoints(id)).data;
  t.equal(last?.world_size, 3);
});

t.test('a job that needs more ranks than are free waits, and two jobs share a machine', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 5 } });
  await f.agent(2);
  const ids = [await f.submit({ ranks: 2 }), await f.submit({ ranks: 1 }), await f.submit({ ranks: 1 })];
  for (const id of ids) await f.untilState(id, 'succeeded');
  t.pass('every job ran');
});
