/** Evaluation: the same losses on any number of ranks, interrupted or not. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { JobSpec } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { sampleText, startStack } from '../support/stack.js';

const STEPS = 24;
const EVERY = 5;

t.test('evaluation', async (t) => {
  const { client } = await startStack(t);
  const upload = async (name: string, text: string) => (await client.datasets.create(name, text)).id;
  const dataset = await upload('openapi', sampleText());

  /** Returns what a job computed. Fails when it did not succeed. */
  const resultOf = async (id: string) => {
    const final = await client.jobs.until(id, () => false);
    t.equal(final.state, 'succeeded', JSON.stringify(final.failure));
    const metrics = await collect(client.jobs.metrics(id));
    const losses = metrics.flatMap(({ step, eval_losses }) => (eval_losses ? [{ step, eval_losses }] : []));
    return { losses, digest: final.export?.state_digest, stopping: final.progress.early_stopping };
  };
  const start = async (spec: JobSpec) => (await client.jobs.create(spec)).id;

  /** Pauses a job after a step and resumes it. */
  const interrupt = async (id: string, step: number, ranks: number) => {
    await client.jobs.until(id, (job) => job.progress.step >= step, { interval_ms: 5 });
    await client.jobs.pause(id);
    const paused = await client.jobs.until(id, (job) => job.state === 'paused', { interval_ms: 20 });
    await client.jobs.resume(id, { ranks });
    return paused.progress.step;
  };

  await t.test('on validation data', async (t) => {
    const evaluated = (name: string, ranks: number) => {
      const job = smallJob({ name, dataset, steps: STEPS, ranks });
      return {
        ...job,
        data: { ...job.data, validation_fraction: 0.1 },
        train: { ...job.train, evaluation: { every_steps: EVERY } },
      };
    };
    const expected = await resultOf(await start(evaluated('one rank', 1)));
    t.same(
      expected.losses.map(({ step }) => step),
      [5, 10, 15, 20, 24],
    );
    const [first = 0, last = 9] = [0, -1].map(
      (i) => expected.losses.at(i)?.eval_losses.validation ?? undefined,
    );
    t.ok(last < first, `the validation loss falls: ${first} to ${last}`);
    t.same(await resultOf(await start(evaluated('three ranks', 3))), expected);

    const id = await start(evaluated('paused', 2));
    await interrupt(id, 7, 4);
    t.same(await resultOf(id), expected);

    const plain = await resultOf(
      await start(smallJob({ name: 'no evaluation', dataset, steps: STEPS, ranks: 2 })),
    );
    t.same(plain.losses, []);
    t.not(plain.digest, expected.digest, 'validation data is not trained on');
  });

  await t.test('on named datasets, one of which ends the training', async (t) => {
    const contract = readFileSync(join(projectRoot(), 'openapi.yaml'), 'utf8');
    const [near, far] = [
      await upload('near', contract.slice(40_000, 46_000)),
      await upload('far', readFileSync(join(projectRoot(), 'docs/exactness.md'), 'utf8').slice(0, 5000)),
    ];
    const job = (name: string, ranks: number): JobSpec => {
      const small = smallJob({ name, dataset, steps: 200, ranks, keep: { last: 1, best: 1 } });
      const spec = largerSteps({ ...small, data: { ...small.data, validation_fraction: 0.1 } });
      const datasets = [
        { name: 'near', dataset: near },
        { name: 'far', dataset: far },
      ];
      const earlyStopping = { metric: 'eval_loss/far', patience: 2, min_delta: 0.2 };
      return {
        ...spec,
        train: { ...spec.train, evaluation: { every_steps: 4, datasets }, early_stopping: earlyStopping },
      };
    };
    const expected = await resultOf(await start(job('one rank, named', 1)));
    t.same(Object.keys(expected.losses[0]?.eval_losses ?? {}).sort(), ['far', 'near', 'validation']);
    const end = expected.losses.at(-1)?.step ?? 0;
    t.ok(end >= 16 && end < 200, `it ended at step ${end}`);
    const best = expected.losses.find(({ step }) => step === end - 8)?.eval_losses.far;
    t.match(expected.stopping, {
      best_step: end - 8,
      best_eval_loss: best,
      evaluations_without_improvement: 2,
    });

    const id = await start(job('two ranks, paused, three ranks', 2));
    await t.rejects(client.datasets.delete(far), { code: 'dataset_in_use' });
    const pausedAt = await interrupt(id, end - 7, 3);
    t.ok(pausedAt >= end - 7 && pausedAt < end, `paused at step ${pausedAt}`);
    t.strictSame(await resultOf(id), expected);
    const checkpoints = await collect(client.jobs.checkpoints(id));
    // The job keeps the last checkpoint and that of the best step. It also keeps the lowest loss of all saved steps,
    // which may be the step of the pause.
    const saved = expected.losses.filter(({ step }) => [end - 8, pausedAt, end].includes(step));
    const lowest = Math.min(...saved.map(({ eval_losses }) => eval_losses.far ?? Number.NaN));
    t.strictSame(
      checkpoints.map(({ step, eval_losses }) => [step, eval_losses]),
      saved
        .filter(({ step, eval_losses }) => step !== pausedAt || eval_losses.far === lowest)
        .reverse()
        .map(({ step, eval_losses }) => [step, eval_losses]),
    );
    const finished = (await collect(client.jobs.events(id))).filter(
      ({ type }) => type === 'evaluation.finished',
    );
    for (const name of ['validation', 'near', 'far'])
      t.strictSame(
        finished.filter(({ data }) => data.name === name).map(({ data }) => [data.step, data.loss]),
        expected.losses.map(({ step, eval_losses }) => [step, eval_losses[name]]),
        name,
      );
    await client.datasets.delete(far);
  });
});
