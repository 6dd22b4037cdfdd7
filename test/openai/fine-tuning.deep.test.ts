/**
 * A program as it is written for OpenAI's fine-tuning API, with the official client; its URL and its key are those of a
 * stack.
 */
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import OpenAI from 'openai';
import type { FineTuningJob, JobCreateParams } from 'openai/resources/fine-tuning/jobs/jobs';
import t from 'tap';
import { startStack } from '../support/stack.js';
import { EXAMPLES, uploadBase } from './base-model.js';

/** Enough to answer the questions of the data, which have few rows. */
const MANY = { n_epochs: 100, batch_size: 1, learning_rate_multiplier: 30 };
const END = '<|im_end|>\n';
/** Examples of one row each, and the parts of their first row that are learned. */
const LEARNED = {
  turns: [`Yes, in the hall.${END}`],
  tools: [`<tool_call>{"name": "find_book", "arguments": {"title": "Kim"}}</tool_call>${END}`],
  functions: [
    `<tool_call>{"name": "find_book", "arguments": {"title": "Kim"}}</tool_call>${END}`,
    `Shelf 1.${END}`,
  ],
  completions: [' hall END'],
};

t.test('fine-tuning through the official client', async (t) => {
  const stack = await startStack(t);
  const { baseUrl, apiKey } = stack.client.options;
  const client = new OpenAI({ baseURL: `${baseUrl}/openai/v1`, apiKey });
  const { jobs } = client.fineTuning;
  const base = await uploadBase(stack, 'my-base');

  const send = async (name: string) => {
    const file = createReadStream(join(EXAMPLES, `${name}.jsonl`));
    return (await client.files.create({ file, purpose: 'fine-tune' })).id;
  };
  const untilEnded = async ({ id }: FineTuningJob): Promise<FineTuningJob> => {
    for (;;) {
      const job = await jobs.retrieve(id);
      if (['succeeded', 'failed', 'cancelled'].includes(job.status)) return job;
      await delay(200);
    }
  };
  const trained = async (params: JobCreateParams): Promise<FineTuningJob & { fine_tuned_model: string }> => {
    const job = await untilEnded(await jobs.create(params));
    const { status, fine_tuned_model: model } = job;
    if (status !== 'succeeded' || model === null) throw new Error(`${status}: ${JSON.stringify(job.error)}`);
    return { ...job, fine_tuned_model: model };
  };

  const first = await trained({
    model: 'my-base',
    training_file: await send('chats'),
    validation_file: await send('validation'),
    suffix: 'desk',
    seed: 3,
    method: {
      type: 'supervised',
      supervised: { hyperparameters: { ...MANY, n_epochs: 20 } },
    },
  });
  t.match(first.fine_tuned_model, new RegExp(`^ft:my-base:default:desk:${first.id}$`));
  t.match(first.hyperparameters, { ...MANY, n_epochs: 20 });
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
    const model = first.fine_tuned_model;
    const messages = [{ role: 'user' as const, content: 'Where is the map?' }];
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
      prompt: 'Where is',
      max_tokens: 3,
      n: 2,
    });
    t.equal(completion.choices.length, 2);
  });

  const files = new Map<string, string>();
  for (const name of Object.keys(LEARNED)) files.set(name, await send(name));

  await t.test('what is learned of the other examples', async (t) => {
    for (const [name, learned] of Object.entries(LEARNED)) {
      const { texts, warnings } = await stack.client.previewData(
        {
          model: { init_from: { model: base } },
          data: { dataset: files.get(name) ?? '' },
          train: { steps: 1, sequence_length: 1024 },
        },
        1,
      );
      const parts = texts[0]?.parts.filter(({ learned }) => learned) ?? [];
      t.same(
        parts.map(({ text }) => text),
        learned,
        name,
      );
      t.same(warnings, [], name);
    }
  });

  await t.test('chats of several turns, and calls by their former names', async (t) => {
    const train = (name: string) =>
      trained({
        model: 'my-base',
        training_file: files.get(name) ?? '',
        hyperparameters: { n_epochs: 1 },
      });
    for (const job of await Promise.all(['turns', 'functions'].map(train)))
      t.ok((job.trained_tokens ?? 0) > 0);
  });

  await t.test('a prompt with its completion', async (t) => {
    const { fine_tuned_model: model } = await trained({
      model: 'my-base',
      training_file: files.get('completions') ?? '',
      hyperparameters: MANY,
    });
    const prompt = 'Title: novel\n\n###\n\n';
    const { choices } = await client.completions.create({
      model,
      prompt,
      temperature: 0,
      max_tokens: 20,
      stop: [' END'],
    });
    t.match(choices, [{ text: ' attic', finish_reason: 'stop' }]);
  });

  await t.test('a model that calls a function', async (t) => {
    const { fine_tuned_model: model } = await trained({
      model: 'my-base',
      training_file: files.get('tools') ?? '',
      hyperparameters: MANY,
    });
    const parameters = {
      type: 'object',
      properties: { title: { type: 'string', description: 'Its title.' }, copies: { type: 'integer' } },
      required: ['title'],
    };
    const find = { name: 'find_book', parameters, description: 'Finds a book.' };
    const question = {
      model,
      messages: [{ role: 'user' as const, content: 'Find Kim.' }],
      temperature: 0,
      seed: 7,
      parallel_tool_calls: false,
    };
    const request = { ...question, tools: [{ type: 'function' as const, function: find }], max_tokens: 200 };
    const { choices } = await client.chat.completions.create({ ...request, logprobs: true, top_logprobs: 2 });
    const [choice] = choices;
    const called = { name: 'find_book', arguments: '{"title": "Kim"}' };
    t.match(choice, {
      finish_reason: 'tool_calls',
      message: { content: null, tool_calls: [{ type: 'function', function: called }] },
    });
    const written = choice?.logprobs?.content ?? [];
    t.equal(
      Buffer.from(written.flatMap(({ bytes }) => bytes ?? [])).toString(),
      `<tool_call>{"name": "find_book", "arguments": {"title": "Kim"}}</tool_call>`,
    );
    t.ok(written.every(({ token, top_logprobs: [best] }) => best?.token === token));
    const streamed = await client.chat.completions.stream(request).finalChatCompletion();
    t.same(
      streamed.choices[0]?.message.tool_calls?.map(({ id, function: { name, arguments: args } }) => [
        id,
        name,
        args,
      ]),
      choice?.message.tool_calls?.map((call) => [call.id, called.name, called.arguments]),
    );

    const asked: unknown[] = [];
    const look = (args: { title: string }) => {
      asked.push(args);
      return '{"shelf": 1}';
    };
    const runner = client.chat.completions.runTools({
      ...question,
      max_tokens: 200,
      tools: [{ type: 'function', function: { ...find, function: look, parse: JSON.parse } }],
    });
    t.equal(await runner.finalContent(), 'Shelf 1.');
    t.same(asked, [{ title: 'Kim' }]);
    t.same(
      runner.messages.map(({ role }) => role),
      ['user', 'assistant', 'tool', 'assistant'],
    );
    const silent = await client.chat.completions.create({ ...request, tool_choice: 'none' });
    t.equal(silent.choices[0]?.message.tool_calls, undefined);
  });

  await t.test('preferences go on with its adapter', async (t) => {
    const second = await trained({
      model: first.fine_tuned_model,
      training_file: await send('preferences'),
      method: { type: 'dpo', dpo: { hyperparameters: { n_epochs: 1, beta: 0.2 } } },
    });
    t.match(second.method, { type: 'dpo', dpo: { hyperparameters: { beta: 0.2, n_epochs: 1 } } });
    t.match(second.fine_tuned_model, /^ft:my-base:default::job_/, 'named by the first base');
    const own = await stack.client.jobs.get(second.id);
    t.match(own.spec.train.objective, { type: 'dpo', reference: 'initial' });
    t.same(own.spec.train.adapter, (await stack.client.jobs.get(first.id)).spec.train.adapter);
    const names = [];
    for await (const { id } of client.models.list()) names.push(id);
    t.ok(names.includes(first.fine_tuned_model) && names.includes(second.fine_tuned_model));

    const name = second.fine_tuned_model;
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
