/**
 * A program as it is written for OpenAI's fine-tuning API, with the official client; its URL and its key are those of a
 * stack.
 */
import { setTimeout as delay } from 'node:timers/promises';
import OpenAI, { toFile } from 'openai';
import type { FineTuningJob } from 'openai/resources/fine-tuning/jobs/jobs';
import t from 'tap';
import { startStack } from '../support/stack.js';
import { uploadBase } from './base-model.js';

const QUESTIONS = Array.from({ length: 40 }, (_, n) => ({ role: 'user', content: `Is ${n} even?` }));
const answer = (n: number, isRight = true) => ({
  role: 'assistant',
  content: (n % 2 === 0) === isRight ? 'Yes.' : 'No.',
});
const CHATS = QUESTIONS.map((question, n) => ({ messages: [question, answer(n)] }));
const PAIRS = QUESTIONS.map((question, n) => ({
  input: { messages: [question] },
  preferred_output: [answer(n)],
  non_preferred_output: [answer(n, false)],
}));

t.test('fine-tuning through the official client', async (t) => {
  const stack = await startStack(t);
  const { baseUrl, apiKey } = stack.client.options;
  const client = new OpenAI({ baseURL: `${baseUrl}/openai/v1`, apiKey });
  const { jobs } = client.fineTuning;
  await uploadBase(stack, 'my-base');

  const send = async (lines: object[], name: string) => {
    const content = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    return (
      await client.files.create({ file: await toFile(Buffer.from(content), name), purpose: 'fine-tune' })
    ).id;
  };
  const untilEnded = async ({ id }: FineTuningJob): Promise<FineTuningJob> => {
    for (;;) {
      const job = await jobs.retrieve(id);
      if (['succeeded', 'failed', 'cancelled'].includes(job.status)) return job;
      await delay(200);
    }
  };
  const chats = await send(CHATS, 'chats.jsonl');
  const heldBack = await send(CHATS.slice(0, 8), 'validation.jsonl');

  const first = await untilEnded(
    await jobs.create({
      model: 'my-base',
      training_file: chats,
      validation_file: heldBack,
      suffix: 'even',
      seed: 3,
      method: { type: 'supervised', supervised: { hyperparameters: { n_epochs: 4 } } },
    }),
  );
  t.equal(first.status, 'succeeded', JSON.stringify(first.error));
  t.match(first.fine_tuned_model, new RegExp(`^ft:my-base:default:even:${first.id}$`));
  t.match(first.hyperparameters, { n_epochs: 4, batch_size: 8, learning_rate_multiplier: 1 });
  t.ok((first.trained_tokens ?? 0) > 0 && first.finished_at !== null);

  await t.test('its events, checkpoints and results', async (t) => {
    const events = [];
    for await (const event of jobs.listEvents(first.id, { limit: 5 })) events.push(event);
    t.equal(new Set(events.map(({ id }) => id)).size, events.length, 'each once, over all pages');
    const losses = events.filter(({ type }) => type === 'metrics');
    const streamed = (
      await (await client.get(`/fine_tuning/jobs/${first.id}/events?stream=true`).asResponse()).text()
    )
      .split('\n\n')
      .filter((message) => message.startsWith('data: '))
      .map((message) => message.slice('data: '.length));
    t.equal(streamed.pop(), '[DONE]');
    const messages = streamed.map((message) => JSON.parse(message)).reverse();
    t.strictSame(
      new Set(messages.map(({ id }) => id)),
      new Set(events.map(({ id }) => id)),
      'the same events',
    );
    t.match(losses[0]?.data, { train_loss: Number, valid_loss: Number, total_steps: losses.length });
    t.ok(events.some(({ message }) => /^Checkpoint created at step \d+$/.test(message)));
    const [last] = (await jobs.checkpoints.list(first.id)).data;
    t.match(last, {
      object: 'fine_tuning.job.checkpoint',
      fine_tuning_job_id: first.id,
      metrics: { step: last?.step_number, train_loss: Number, valid_loss: Number },
    });
    const [results = ''] = first.result_files;
    const csv = (await (await client.files.content(results)).text()).trimEnd().split('\n');
    t.equal(csv[0], 'step,train_loss,valid_loss');
    t.equal(csv.length, 1 + losses.length);
    const stepOf = (line = '') => Number(line.split(',')[1]);
    t.ok(stepOf(csv.at(-1)) < stepOf(csv[1]), 'it learns');
    t.equal((await client.files.retrieve(results)).purpose, 'fine-tune-results');
  });

  await t.test('the result answers', async (t) => {
    const model = first.fine_tuned_model ?? '';
    const messages = [{ role: 'user' as const, content: 'is 7 even' }];
    const options = { model, messages, max_tokens: 12, seed: 7, logprobs: true, top_logprobs: 3 };
    const answer = await client.chat.completions.create(options);
    const again = await client.chat.completions.create(options);
    t.strictSame(again.choices, answer.choices, 'the same answer with a seed');
    let text = '';
    for await (const chunk of await client.chat.completions.create({ ...options, stream: true }))
      text += chunk.choices[0]?.delta.content ?? '';
    t.equal(text, answer.choices[0]?.message.content);
    const { usage } = again;
    t.match(usage, { completion_tokens: Number, prompt_tokens: Number });
    t.equal(usage?.total_tokens, (usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0));
    const base = await client.chat.completions.create({ ...options, model: 'my-base' });
    t.notSame(base.choices[0]?.logprobs, answer.choices[0]?.logprobs, 'the base was not fine-tuned');
    t.equal(base.usage?.completion_tokens, base.choices[0]?.logprobs?.content?.length);
    const checkpoint = (await jobs.checkpoints.list(first.id)).data[0]?.fine_tuned_model_checkpoint ?? '';
    const completion = await client.completions.create({
      model: checkpoint,
      prompt: 'is 7',
      max_tokens: 3,
      n: 2,
    });
    t.equal(completion.choices.length, 2);
  });

  await t.test('preferences go on with its adapter', async (t) => {
    const second = await untilEnded(
      await jobs.create({
        model: first.fine_tuned_model ?? '',
        training_file: await send(PAIRS, 'pairs.jsonl'),
        method: { type: 'dpo', dpo: { hyperparameters: { n_epochs: 1, beta: 0.2 } } },
      }),
    );
    t.equal(second.status, 'succeeded', JSON.stringify(second.error));
    t.match(second.method, { type: 'dpo', dpo: { hyperparameters: { beta: 0.2, n_epochs: 1 } } });
    t.match(second.fine_tuned_model, /^ft:my-base:default::job_/, 'named by the first base');
    const own = await stack.client.jobs.get(second.id);
    t.match(own.spec.train.objective, { type: 'dpo', reference: 'initial' });
    t.same(own.spec.train.adapter, (await stack.client.jobs.get(first.id)).spec.train.adapter);
    const names = [];
    for await (const { id } of client.models.list()) names.push(id);
    t.ok(names.includes(first.fine_tuned_model ?? '') && names.includes(second.fine_tuned_model ?? ''));

    const name = second.fine_tuned_model ?? '';
    t.match(await client.models.retrieve(name), { id: name, object: 'model', owned_by: 'default' });
    const [last] = (await jobs.checkpoints.list(second.id)).data;
    const checkpoint = last?.fine_tuned_model_checkpoint ?? '';
    t.equal((await client.models.retrieve(checkpoint)).id, checkpoint);
    for (const each of [checkpoint, name]) {
      t.match(await client.models.delete(each), { id: each, deleted: true });
      await t.rejects(client.models.retrieve(each), /^404 /);
    }
    await t.rejects(stack.client.jobs.get(second.id), /job_not_found/);
  });
});
