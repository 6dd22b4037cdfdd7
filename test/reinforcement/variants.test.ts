/** Jobs with reinforcement learning whose documents choose other batches, rows and losses. */
import t from 'tap';
import type { JobMetric, JobSpec } from '../../contracts/index.js';
import { commandLine } from '../cli/command-line.js';
import { digitsJob, uploadDigits } from '../support/prompts.js';
import { startStack } from '../support/stack.js';

const STEPS = 6;
const POLL = { interval_ms: 5 };

t.test('variants of the objective grpo', async (t) => {
  const stack = await startStack(t, { env: { ZEROFLEET_SLOTS: '3', ZEROFLEET_THREADS_PER_RANK: '1' } });
  const { client } = stack;
  const dataset = await uploadDigits(client);
  const { baseUrl, apiKey } = client.options;
  const zerofleet = commandLine({ ZEROFLEET_URL: baseUrl, ZEROFLEET_API_KEY: apiKey });

  const trained = async (spec: JobSpec) => {
    const { id } = await client.jobs.create(spec);
    const job = await client.jobs.wait(id);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    return job;
  };
  const replayed = (id: string, ranks: number) => zerofleet(['replay', id, '--ranks', String(ranks)]);

  await t.test('with a penalty the bits are those of any number of ranks', async (t) => {
    const jobOf = (ranks: number): JobSpec => {
      const objective = { loss: { type: 'ppo', beta: 0.1 } } as const;
      const job = digitsJob({ name: `penalty on ${ranks}`, dataset, steps: STEPS, ranks, objective });
      return { ...job, train: { ...job.train, optimizer: { lr: 0.02 }, adapter: { rank: 4 } } };
    };
    const [one, three] = [await trained(jobOf(1)), await trained(jobOf(3))];
    t.equal(three.export?.state_digest, one.export?.state_digest);
    const metrics: JobMetric[] = [];
    for await (const metric of client.jobs.metrics(one.id)) metrics.push(metric);
    const kl = metrics.map(({ reinforcement }) => reinforcement?.kl ?? Number.NaN);
    t.equal(kl[0], 0, 'the first step is that of the base');
    t.ok((kl.at(-1) ?? 0) > 0, `the last one is not: ${kl}`);
    t.match(await replayed(one.id, 2), { code: 0, out: /results are the same, bit for bit/ });
  });

  await t.test('with packing whole and automatic batches a replay gives every result', async (t) => {
    const job = digitsJob({ name: 'automatic', dataset, steps: STEPS, ranks: 2 });
    const { global_batch_size: _, ...train } = job.train ?? {};
    const { id, spec } = await trained({
      ...job,
      data: { ...job.data, packing: 'whole' },
      train: { ...train, micro_batch_size: 'auto' },
    });
    t.type(spec.train.micro_batch_size, 'number');
    t.match(await replayed(id, 1), { code: 0, out: /results are the same, bit for bit/ });
  });

  await t.test('evaluations by the grader: rewards, the best checkpoint, and a replay', async (t) => {
    const jobOf = (ranks: number): JobSpec => {
      const job = digitsJob({ name: `evaluated on ${ranks}`, dataset, steps: STEPS, ranks });
      const evaluation = { every_steps: 2, datasets: [{ name: 'digits', dataset }] };
      return {
        ...job,
        train: { ...job.train, evaluation },
        checkpoint: { every_steps: 1, keep: { last: 1, best: 2 } },
      };
    };
    const [one, three] = [await trained(jobOf(1)), await trained(jobOf(3))];
    t.equal(three.export?.state_digest, one.export?.state_digest);
    const figures = async (id: string) => {
      const found = new Map<number, number>();
      for await (const { step, eval_losses } of client.jobs.metrics(id))
        if (eval_losses) found.set(step, eval_losses.digits ?? Number.NaN);
      return [...found];
    };
    const measured = await figures(one.id);
    t.same(
      measured.map(([step]) => step),
      [2, 4, 6],
    );
    t.same(await figures(three.id), measured);
    const best = Math.max(...measured.map(([, reward]) => reward));
    t.match(one.progress.evaluations, { digits: { step: 6, best_loss: best } });
    const kept: [number, number | undefined][] = [];
    for await (const { step, eval_losses } of client.jobs.checkpoints(one.id))
      kept.push([step, eval_losses?.digits]);
    t.ok(
      kept.some(([, reward]) => reward === best),
      JSON.stringify(kept),
    );
    t.match(await replayed(one.id, 2), { code: 0, out: /results are the same, bit for bit/ });
  });

  await t.test('a pause at the last step ends in the same state, behind one finish', async (t) => {
    const jobOf = (name: string) => digitsJob({ name, dataset, steps: STEPS, ranks: 1 });
    const expected = await trained(jobOf('whole'));
    const { id } = await client.jobs.create(jobOf('paused'));
    await client.jobs.until(id, ({ progress }) => progress.step >= STEPS - 1, POLL);
    await client.jobs.pause(id).catch(() => undefined);
    const ended = ['paused', 'succeeded'];
    const { state } = await client.jobs.until(id, (job) => ended.includes(job.state), POLL);
    t.comment(`${state} at the pause`);
    if (state === 'paused') await client.jobs.resume(id);
    const job = await client.jobs.wait(id);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    t.equal(job.export?.state_digest, expected.export?.state_digest);
    const types: string[] = [];
    for await (const { type } of client.calls.list(id, { limit: 100 })) types.unshift(type);
    t.equal(types.indexOf('finish'), types.length - 1);
  });
});
