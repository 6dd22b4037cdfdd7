/**
 * Preference objectives on the whole stack: exactness under pauses and resizes, references that forks continue with,
 * and reports.
 */
import t, { type Test } from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { Checkpoint, Job, JobSpec } from '../../contracts/index.js';
import { smallJob } from '../support/specs.js';
import { startStack } from '../support/stack.js';

const STEPS = 16;
const HALF = STEPS / 2;
const FINISHED = () => false;

/** Prompts with an orderly completion, which is chosen, and a disorderly one. */
function pairs(count: number): string {
  const line = (_: unknown, i: number) => {
    const [a, b] = [i % 7, (i * 5) % 9];
    return JSON.stringify({
      prompt: `${a} and ${b}: `,
      chosen: `sum ${a + b}${'.'.repeat(i % 4)}`,
      rejected: `${'x'.repeat(1 + (i % 5))} ${b}${a}`,
    });
  };
  return Array.from({ length: count }, line).join('\n');
}

t.test('preferences', async (t) => {
  const stack = await startStack(t);
  const { client } = stack;
  const { id: dataset } = await client.datasets.create('pairs', pairs(60), 'jsonl');
  const specOf = (train: JobSpec['train'], ranks: number, model: Partial<JobSpec['model']> = {}): JobSpec => {
    const spec = smallJob({
      name: 'preferences',
      dataset,
      steps: STEPS,
      ranks,
      every_steps: HALF,
      keep: { last: 4 },
    });
    return {
      ...spec,
      model: { ...spec.model, ...model },
      data: { dataset, validation_fraction: 0.2 },
      train: { ...spec.train, global_batch_size: 8, evaluation: { every_steps: HALF }, ...train },
    };
  };
  const finished = async (t: Test, spec: JobSpec) => {
    const job = await client.jobs.until((await client.jobs.create(spec)).id, FINISHED, { interval_ms: 50 });
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    return job;
  };
  /** Runs a job on two ranks, which pauses on its way and continues on three. */
  const disturbed = async (t: Test, spec: JobSpec) => {
    const { id } = await client.jobs.create(spec);
    await client.jobs.until(id, ({ progress }) => progress.step >= 3, { interval_ms: 10 });
    await client.jobs.pause(id);
    const { state } = await client.jobs.until(id, (job) => job.state === 'paused', { interval_ms: 20 });
    if (state === 'paused') await client.jobs.resume(id, { ranks: 3 });
    const job = await client.jobs.until(id, FINISHED, { interval_ms: 50 });
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    return job;
  };
  const digestOf = (job: Job) => job.export?.state_digest;
  const meansOf = async ({ id }: Job) =>
    (await collect(client.jobs.metrics(id))).map(({ loss, preference }) => ({ loss, preference }));

  const dpo = { objective: { type: 'dpo', beta: 0.5 } } as const;
  const plain = await finished(t, specOf(dpo, 1));

  await t.test('dpo with the initial model as the reference is exact, and reports its margin', async (t) => {
    const job = await disturbed(t, specOf(dpo, 2));
    t.equal(digestOf(job), digestOf(plain));
    const means = await meansOf(plain);
    t.strictSame(await meansOf(job), means);
    t.match(means[0], { preference: { reward_chosen: 0, reward_rejected: 0, margin: 0, accuracy: 0 } });
    t.ok(Math.abs((means[0]?.loss ?? 0) - Math.LN2) < 1e-6);
    t.ok((means.at(-1)?.preference?.margin ?? 0) > 0.05, JSON.stringify(means.at(-1)));
    t.strictSame(plain.progress.preference, means.at(-1)?.preference);
    const events = await collect(client.jobs.events(plain.id));
    const evaluated = events.filter(({ type }) => type === 'evaluation.finished');
    t.match(evaluated, [
      { data: { preference: { margin: Number } } },
      { data: { preference: { margin: Number } } },
    ]);
  });

  await t.test('kto with an adapter, whose base is the reference, is exact', async (t) => {
    const train = { objective: { type: 'kto' }, adapter: { rank: 4 }, optimizer: { lr: 0.02 } } as const;
    const one = await finished(t, specOf(train, 1));
    const other = await disturbed(t, specOf(train, 2));
    t.equal(digestOf(other), digestOf(one));
    t.strictSame(await meansOf(other), await meansOf(one));
  });

  await t.test('a fork continues with the reference of its source, or is refused', async (t) => {
    const checkpoints: Checkpoint[] = await collect(client.jobs.checkpoints(plain.id));
    const half = checkpoints.find(({ step }) => step === HALF)?.id ?? '';
    const fork = (objective: 'dpo' | 'ipo', restore: 'continue' | 'weights') =>
      specOf({ objective: { type: objective, beta: 0.5 } }, 2, { init_from: { checkpoint: half, restore } });
    const continued = await finished(t, fork('dpo', 'continue'));
    t.equal(digestOf(continued), digestOf(plain));
    await t.rejects(client.jobs.create(fork('ipo', 'continue')), /422 .*\/train\/objective/);
    const anew = await finished(t, fork('ipo', 'weights'));
    t.match((await meansOf(anew))[0], { preference: { margin: 0 } });
  });
});
