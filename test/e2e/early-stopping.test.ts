/** Early stopping: the same end on any number of ranks, interrupted or not. */
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { JobSpec } from '../../contracts/index.js';
import { agentProcess, rankProcesses } from '../support/processes.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { sampleText, startStack } from '../support/stack.js';

const STEPS = 200;
const EVERY = 4;

/** A job whose loss falls fast first, and then by less than `min_delta` between evaluations. */
function stoppingJob(name: string, dataset: string, ranks: number): JobSpec {
  const job = largerSteps(
    smallJob({ name, dataset, steps: STEPS, ranks, every_steps: 6, keep: { last: 1 } }),
    20,
  );
  const earlyStopping = { patience: 2, min_delta: 0.25 };
  return {
    ...job,
    data: { ...job.data, validation_fraction: 0.1 },
    train: { ...job.train, evaluation: { every_steps: EVERY }, early_stopping: earlyStopping },
  };
}

t.test('a job ends at the same step with the same digests on 1 and 2 ranks, also after kills', async (t) => {
  const stack = await startStack(t);
  const { client } = stack;
  const dataset = (await client.datasets.create('openapi', sampleText())).id;
  const endOf = async (id: string) => {
    const job = await client.jobs.until(id, () => false);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    const checkpoints = await collect(client.jobs.checkpoints(id));
    return {
      reason: job.reason,
      progress: job.progress.early_stopping,
      last: [job.latest_checkpoint?.step, job.latest_checkpoint?.state_digest],
      exported: [job.export?.step, job.export?.state_digest],
      kept: checkpoints.map(({ step, eval_losses, state_digest }) => [
        step,
        eval_losses?.validation,
        state_digest,
      ]),
      trained: new Set((await collect(client.jobs.metrics(id))).map(({ step }) => step)).size,
    };
  };

  const expected = await endOf((await client.jobs.create(stoppingJob('one rank', dataset, 1))).id);
  const [end = 0] = expected.last as number[];
  const best = end - 2 * EVERY;
  t.match(expected, {
    reason: 'early_stopping',
    progress: { best_step: best, evaluations_without_improvement: 2 },
    trained: end,
  });
  t.ok(best >= 2 * EVERY && end < STEPS, `it ended at step ${end}`);
  t.equal(expected.exported[0], best, 'the best checkpoint is exported');
  t.strictSame(
    expected.kept.map(([step]) => step),
    [end, best],
  );
  t.not(expected.exported[1], expected.last[1]);

  const two = await client.jobs.create(stoppingJob('two ranks, killed twice', dataset, 2));
  for (const [step, victim] of [
    [best + 1, () => rankProcesses(stack.pid)[0]],
    [best + EVERY + 1, () => agentProcess(stack.pid)],
  ] as const) {
    await client.jobs.until(two.id, ({ progress }) => progress.step >= step, { interval_ms: 5 });
    const pid = victim()?.pid;
    if (pid === undefined) throw new Error('the process to kill has ended');
    process.kill(pid, 'SIGKILL');
  }
  t.strictSame(await endOf(two.id), expected);
  const attempts = await collect(client.jobs.attempts(two.id));
  t.ok(attempts.length > 1, 'the job was interrupted');
});
