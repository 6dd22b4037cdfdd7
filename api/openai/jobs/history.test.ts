/** Pages of a job's events and checkpoints: by position, while the job goes on, at the cost of their rows. */
import OpenAI from 'openai';
import t, { type Test } from 'tap';
import { ADMIN_KEY, startTestStack } from '../../testing/stack.js';
import { checkpointOf, claimAndTrain, metricOf } from '../../testing/training.js';

const STEPS = 1500;

async function trained(t: Test) {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { store } = stack;
  const job = await stack.createJob({ train: { steps: 10_000 } });
  const execution = await claimAndTrain(store, job.id, { steps: 1 });
  const report = (from: number, to: number) =>
    store.report(
      job.id,
      execution,
      Array.from({ length: to - from + 1 }, (_, i) => metricOf(from + i)),
      null,
    );
  await report(2, STEPS);
  const baseURL = `${await stack.listen()}/openai/v1`;
  const client = new OpenAI({ baseURL, apiKey: ADMIN_KEY, maxRetries: 0 });
  return { store, job, execution, report, jobs: client.fineTuning.jobs };
}

t.test('each event is in one page, also while the job goes on', async (t) => {
  const { store, job, report, jobs } = await trained(t);
  const before = (await store.readStream(job.id, null, 10_000, ['event', 'metric'])).reverse();
  const ids: string[] = [];
  let step = STEPS;
  for await (const { id } of jobs.listEvents(job.id, { limit: 150 })) {
    ids.push(id);
    if (ids.length % 150 !== 1) continue;
    await report(step + 1, step + 100);
    step += 100;
  }
  t.same(
    ids,
    before.map(({ position }) => `ftevent-${position}`),
    'those of the first page and the older ones, newest first',
  );
});

t.test('rewards have the names of the hosted API', async (t) => {
  const { store, job, execution, jobs } = await trained(t);
  const rewarded = { ...metricOf(STEPS + 1), reinforcement: { reward: 0.5 } };
  await store.report(job.id, execution, [{ ...rewarded, eval_losses: { validation_file: 0.75 } }], null);
  const [newest] = (await jobs.listEvents(job.id, { limit: 1 })).data;
  t.match(newest, {
    message: `Step ${STEPS + 1}/10000: train mean reward=0.5000, full validation mean reward=0.7500`,
    data: {
      train_mean_reward: 0.5,
      full_valid_mean_reward: 0.75,
      scores: { train_reward_mean: 0.5, valid_reward_mean: 0.75 },
    },
  });
});

t.test('an unknown cursor is refused, and that of a deleted checkpoint', async (t) => {
  const { store, job, execution, jobs } = await trained(t);
  const one = checkpointOf(job.id, 40);
  for (const checkpoint of [one, checkpointOf(job.id, 700)])
    await store.commitCheckpoint(job.id, execution, checkpoint);
  const listed = [];
  for await (const { id, metrics } of jobs.checkpoints.list(job.id, { limit: 1 }))
    listed.push([id, metrics?.train_loss]);
  t.match(listed, [
    [/^ckpt_/, metricOf(700).loss],
    [one.id, metricOf(40).loss],
    [/^ckpt_/, metricOf(1).loss],
  ]);
  await store.deleteCheckpoint(one.id);
  const wanted = { status: 400, code: 'invalid_parameter', param: 'after' };
  for (const after of [one.id, 'ckpt_01J00000000000000000000000', 'x'])
    await t.rejects(jobs.checkpoints.list(job.id, { after }), wanted, after);
  for (const after of ['x', 'ftevent-x', 'ftevent-00000000-1-1'])
    await t.rejects(jobs.listEvents(job.id, { after }), wanted, after);
});

t.test('a page costs its rows', async (t) => {
  const { store, job, jobs } = await trained(t);
  let read = 0;
  for (const name of ['readNewest', 'readSteps', 'readStream'] as const) {
    const original = store[name] as (...args: unknown[]) => Promise<unknown[]>;
    // Replaced in place, so that the API sees the replacement as well.
    Object.assign(store, {
      [name]: async (...args: unknown[]) => {
        const entries = await original(...args);
        read += entries.length;
        return entries;
      },
    });
  }
  await jobs.listEvents(job.id, { limit: 5 });
  t.ok(read <= 6, `${read} entries for 5 events`);
  read = 0;
  await jobs.checkpoints.list(job.id);
  t.ok(read <= 200, `${read} entries for one checkpoint`);
});
