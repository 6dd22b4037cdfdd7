/** Reinforcement learning of a tiny model: to copy a digit. */
import t from 'tap';
import type { Grader, JobMetric, JobSpec } from '../../contracts/index.js';
import { digitsJob, uploadDigits } from '../support/prompts.js';
import { startStack } from '../support/stack.js';

const STEPS = 200;
const FORM_STEPS = 100;
const DIGITS = [...'0123456789'];
const IS_COPY: Grader = {
  type: 'string_check',
  name: 'copy',
  operation: 'eq',
  input: '{{sample.output_text}}',
  reference: '{{item.digit}}',
};

t.test('the reward rises from chance to 0.9', { timeout: 600_000 }, async (t) => {
  const { client } = await startStack(t, { env: { ZEROFLEET_SLOTS: '2', ZEROFLEET_THREADS_PER_RANK: '1' } });
  const dataset = await uploadDigits(client);
  const job = digitsJob({ name: 'copy', dataset, steps: STEPS, ranks: 2 });
  const { objective: _, ...train } = job.train ?? {};

  // Any digit behind a prompt: the form of an answer.
  const lines = DIGITS.flatMap((prompt) =>
    DIGITS.map((completion) => ({ prompt: `${prompt}=`, completion })),
  );
  const text = lines.map((line) => JSON.stringify(line)).join('\n');
  const form: JobSpec = {
    ...job,
    name: 'form',
    data: { dataset: (await client.datasets.create('form', text, 'jsonl')).id },
    train: { ...train, steps: FORM_STEPS, lr_schedule: { type: 'cosine', warmup_steps: 5 } },
  };
  const taught = await client.jobs.wait((await client.jobs.create(form)).id);
  t.equal(taught.state, 'succeeded', JSON.stringify(taught.failure));

  const { id } = await client.jobs.create({
    ...job,
    model: { ...job.model, init_from: { checkpoint: taught.latest_checkpoint?.id ?? '' } },
    train: {
      ...train,
      optimizer: { lr: 1e-3 },
      gradient_clipping: 0.3,
      global_batch_size: 160,
      micro_batch_size: 20,
      objective: { type: 'grpo', grader: IS_COPY, prompts_per_step: 10, group_size: 16, max_tokens: 1 },
    },
    checkpoint: { every_steps: 50 },
  });
  const done = await client.jobs.wait(id);
  t.equal(done.state, 'succeeded', JSON.stringify(done.failure));
  const metrics: JobMetric[] = [];
  for await (const metric of client.jobs.metrics(id)) metrics.push(metric);
  const rewards = metrics.map(({ reinforcement }) => reinforcement?.reward ?? Number.NaN);
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  t.comment(
    `rewards: ${rewards
      .filter((_, i) => i % 10 === 0)
      .map((reward) => reward.toFixed(2))
      .join(' ')}`,
  );
  t.ok(mean(rewards.slice(0, 3)) < 0.3, 'chance at first');
  t.ok(mean(rewards.slice(-10)) >= 0.9, 'learned at last');
});
