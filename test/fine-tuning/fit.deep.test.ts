/** Chats packed by best fit: the same bits on any number of ranks and over a pause, and fewer sequences. */
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { JobSpec } from '../../contracts/index.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { startStack } from '../support/stack.js';

const STEPS = 24;
const FINISHED = () => false;
const TEMPLATE =
  "{% for message in messages %}{% if message.role == 'assistant' %}{% generation %}{{ message.content }}{% endgeneration %}{% else %}{{ message.role }}: {{ message.content }}\n{% endif %}{% endfor %}";

/** Chats of many lengths; some are longer than a sequence. */
const CHATS = Array.from({ length: 150 }, (_, i) => {
  const words = (count: number) => 'word '.repeat(count) + i;
  const messages = [
    { role: 'user', content: words((i * 7) % 5) },
    { role: 'assistant', content: words((i * 11) % 17) },
  ];
  return JSON.stringify({ messages });
}).join('\n');

t.test('best fit', async (t) => {
  const { client } = await startStack(t);
  const { id: dataset } = await client.datasets.create('chats', CHATS, 'jsonl');
  const spec = (ranks: number, packing: 'fit' | 'whole' = 'fit'): JobSpec => {
    const job = largerSteps(smallJob({ name: `${packing} on ${ranks}`, dataset, steps: STEPS, ranks }));
    return {
      ...job,
      data: { dataset, packing, chat_template: TEMPLATE, seed: 7, validation_fraction: 0.1 },
      train: { ...job.train, sequence_length: 64, evaluation: { every_steps: 8 } },
    };
  };
  const resultOf = async (id: string) => {
    const job = await client.jobs.until(id, FINISHED, { interval_ms: 50 });
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    const metrics = await collect(client.jobs.metrics(id));
    const losses = metrics.flatMap(({ step, eval_losses }) => (eval_losses ? [[step, eval_losses]] : []));
    const events = await collect(client.jobs.events(id));
    const prepared = events.findLast(({ type }) => type === 'data.prepared')?.data;
    const { sequences, tokens_digest } = prepared as { sequences: number; tokens_digest: string };
    const { tokens, padding } = job.progress;
    t.equal(tokens, STEPS * Math.round(job.spec.train.global_batch_size * 64 * (1 - (padding ?? 0))));
    return { losses, digest: job.export?.state_digest, sequences, tokens_digest, padding: padding ?? 1 };
  };
  const run = async (spec: JobSpec) => resultOf((await client.jobs.create(spec)).id);

  const expected = await run(spec(1));
  t.equal(expected.losses.length, 3);
  for (const ranks of [2, 3]) t.same(await run(spec(ranks)), expected, `${ranks} ranks`);

  const { id } = await client.jobs.create(spec(3));
  await client.jobs.until(id, ({ progress }) => progress.step >= 5, { interval_ms: 5 });
  await client.jobs.pause(id);
  const paused = await client.jobs.until(id, ({ state }) => state === 'paused', { interval_ms: 20 });
  t.ok(paused.progress.step < STEPS, `paused at ${paused.progress.step}`);
  await client.jobs.resume(id, { ranks: 2 });
  t.same(await resultOf(id), expected, 'after a pause');

  const whole = await run(spec(2, 'whole'));
  t.ok(
    whole.sequences > expected.sequences,
    `${whole.sequences} sequences, ${expected.sequences} by best fit`,
  );
  t.ok(
    expected.padding < 0.1 && whole.padding > 2 * expected.padding,
    `${whole.padding}, ${expected.padding}`,
  );
  t.not(whole.digest, expected.digest);
});
