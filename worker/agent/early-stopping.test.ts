/** Tests of jobs that end when their evaluations no longer improve. */
import t, { type Test } from 'tap';
import type { Checkpoint, Job } from '../../contracts/index.js';
import { fakeStateDigest } from '../testing/fake-state.js';
import { Fleet, type FleetOptions } from '../testing/fleet.js';
import type { TestSpec } from '../testing/start-message.js';

/** The best loss is that of step 12; with a patience of three the training ends at step 24. */
const LOSSES = [{ 4: 5, 8: 4, 12: 3, 16: 3.5, 20: 3, 24: 4, 28: 0.1 }];
const BEST = 12;
const END = 24;
const STOPPED = { best_eval_loss: 3, best_step: BEST, evaluations_without_improvement: 3 };

const JOB: TestSpec = {
  steps: 100,
  checkpoint: { every_steps: 5, keep: { last: 1 } },
  train: { evaluation: { every_steps: 4 }, early_stopping: { patience: 3 } },
  data: { validation_fraction: 0.1 },
};

async function startFleet(t: Test, ranks: FleetOptions['ranks'] = {}): Promise<Fleet> {
  const fleet = await Fleet.start({ ranks: { eval_losses: LOSSES, ...ranks } });
  t.teardown(() => fleet.close());
  return fleet;
}

const stepsOf = (checkpoints: readonly Checkpoint[]) => checkpoints.map(({ step }) => step);

/** Checks the end of a job that stopped early and exported its best checkpoint. */
async function checkEnd(t: Test, fleet: Fleet, id: string, title: string): Promise<Job> {
  const job = await fleet.untilState(id, 'succeeded');
  const { data } = await fleet.store.listCheckpoints(id);
  t.match(
    job,
    {
      reason: 'early_stopping',
      progress: { step: END, total_steps: 100, early_stopping: STOPPED },
      latest_checkpoint: { step: END, state_digest: fakeStateDigest(1, END) },
      export: { step: BEST, checkpoint_id: data[1]?.id, state_digest: fakeStateDigest(1, BEST) },
    },
    title,
  );
  t.strictSame(stepsOf(data), [END, BEST], `${title}: the best checkpoint is kept`);
  const ended = (await fleet.events(id)).filter(({ type }) => type === 'training.stopped_early');
  t.match(ended.at(-1)?.data, { step: END, metric: 'eval_loss', ...STOPPED }, title);
  t.equal(Math.max(...(await fleet.steps(id))), END, `${title}: no further step is trained`);
  return job;
}

t.test('a job ends at the same step on one and on three ranks, also after kills', async (t) => {
  const fleet = await startFleet(t, {
    faults: [
      // After the best evaluation, before its checkpoint may be stored; between evaluations; before the last one.
      { rank: 1, step: 13, kind: 'kill' },
      { rank: 0, step: 18, kind: 'kill' },
      { rank: 1, step: 24, kind: 'kill' },
    ],
  });
  await fleet.agent();
  const one = await fleet.submit({ ...JOB, ranks: 1, max_errors: 9 });
  await checkEnd(t, fleet, one, 'one rank, killed once');
  const three = await fleet.submit({ ...JOB, ranks: 3, max_errors: 9 });
  await checkEnd(t, fleet, three, 'three ranks, killed twice');
});

t.test('a job that is paused continues with the same state on another worker and other ranks', async (t) => {
  const fleet = await startFleet(t, { slow: { from: 18, ms: 300 } });
  const first = await fleet.agent();
  const id = await fleet.submit({ ...JOB, ranks: 2 });
  await fleet.until(id, ({ progress }) => progress.step >= 17);
  await fleet.store.requestPause(id);
  await fleet.untilState(id, 'paused');
  t.match((await fleet.store.getJob(id))?.progress.early_stopping, {
    best_step: BEST,
    evaluations_without_improvement: 1,
  });
  await first.close();
  const { data } = await fleet.store.listCheckpoints(id);
  t.match(data.at(-1), { step: BEST, eval_losses: { validation: 3 }, best_step: BEST });
  await t.rejects(fleet.store.deleteCheckpoint(`${data.at(-1)?.id}`), {
    code: 'checkpoint_in_use',
    message: /is the best checkpoint/,
  });
  await fleet.speedUp();
  await fleet.agent();
  await fleet.store.resumeJob(id, { ranks: 3 });
  await checkEnd(t, fleet, id, 'paused');
});

t.test('a damaged best checkpoint is trained again', async (t) => {
  const fleet = await startFleet(t, { slow: { from: 18, ms: 300 } });
  await fleet.agent();
  const id = await fleet.submit({ ...JOB, ranks: 2 });
  await fleet.until(id, ({ progress }) => progress.step >= 17);
  await fleet.store.requestPause(id);
  await fleet.untilState(id, 'paused');
  const best = (await fleet.store.listCheckpoints(id)).data.find(({ step }) => step === BEST);
  const [shard] = (await fleet.keys(`${best?.prefix}/`)).filter((key) => key.endsWith('.safetensors'));
  await fleet.objects.delete([`${shard}`]);
  await fleet.speedUp();
  await fleet.store.resumeJob(id);
  const job = await checkEnd(t, fleet, id, 'damaged');
  t.not(job.export?.checkpoint_id, best?.id);
  const fallbacks = (await fleet.events(id)).filter(({ type }) => type === 'checkpoint.fallback');
  t.match(
    fallbacks.map(({ data }) => data),
    [
      { step: BEST, code: 'object_not_found' },
      { step: END, code: 'checkpoint_not_found', message: /the checkpoint of step 12, the best one of/ },
    ],
  );
});

t.test(
  'a best checkpoint that cannot be stored is an error of the job, which repeats its step',
  async (t) => {
    const fleet = await startFleet(t, { slow: { from: 12, ms: 1000 } });
    await fleet.agent();
    const id = await fleet.submit({ ...JOB, ranks: 2, max_errors: 99 });
    await fleet.until(id, ({ progress }) => progress.step === 11);
    const endFullDisk = await fleet.fillDisk();
    const failed = async () => (await fleet.events(id)).find(({ type }) => type === 'attempt.retry');
    while (!(await failed())) await fleet.until(id, () => true);
    t.match(await failed(), { data: { code: 'disk_full' } });
    await endFullDisk();
    await fleet.speedUp();
    await checkEnd(t, fleet, id, 'disk full');
  },
);

t.test('the last checkpoint is exported on request', async (t) => {
  const fleet = await startFleet(t);
  await fleet.agent();
  const id = await fleet.submit({ ...JOB, export: { checkpoint: 'last' } });
  const job = await fleet.untilState(id, 'succeeded');
  t.match(job, { reason: 'early_stopping', export: { step: END, state_digest: fakeStateDigest(1, END) } });
});

t.test('a fork begins with its own evaluations', async (t) => {
  const fleet = await startFleet(t);
  await fleet.agent();
  const id = await fleet.submit(JOB);
  await fleet.untilState(id, 'succeeded');
  const [last] = (await fleet.store.listCheckpoints(id)).data;
  const { id: checkpoint, prefix } = last as Checkpoint;
  const initFrom = { checkpoint, prefix, job: id, restore: 'continue' as const };
  const fork = await fleet.submit({ ...JOB, steps: 40, init_from: initFrom });
  const job = await fleet.untilState(fork, 'succeeded');
  t.match(job, { reason: 'completed', progress: { step: 40, early_stopping: { best_step: 28 } } });
  t.match(job.export, { step: 28, state_digest: fakeStateDigest(1, 28) });
});
