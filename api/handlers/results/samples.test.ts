import t from 'tap';
import type {
  AnswerDelta,
  AnswerToken,
  Checkpoint,
  Model,
  Page,
  Problem,
  Sample,
  SamplePayload,
  SampleReply,
} from '../../../contracts/index.js';
import { modelFolder, tarOf } from '../../../formats/testing/models.js';
import { upload } from '../../testing/model-uploads.js';
import { CHATS, startTestStack } from '../../testing/stack.js';
import { claimAndTrain } from '../../testing/training.js';

/** Two tokens of one byte each, as the worker sends them and as clients get them. */
const LOGPROBS: AnswerToken[] = [
  { token: '\uFFFD', bytes: [0xc3], logprob: -1, top: [{ token: 'é', logprob: -0.5 }] },
  { token: '\uFFFD', bytes: [0xa9], logprob: -0.1, top: [] },
];
const WIRE_LOGPROBS = [
  { token: '\uFFFD', bytes: [0xc3], logprob: -1, top: [{ token: 'é', bytes: [0xc3, 0xa9], logprob: -0.5 }] },
  { token: '\uFFFD', bytes: [0xa9], logprob: -0.1, top: [] },
];

t.test('a sample of a checkpoint', async (t) => {
  const asked: [string, SamplePayload][] = [];
  const usage = { prompt_tokens: 2, cached_tokens: 0, completion_tokens: 3 };
  const replyOf = (prompt: string, text: string): SampleReply => ({
    ok: true,
    sample: { prompt, choices: [{ index: 0, text, finish_reason: 'stop', logprobs: [] }], usage },
  });
  let answer = replyOf('to', ' be');
  /** Deltas of the worker before its answer. */
  let deltas: AnswerDelta[][] = [];
  const stack = await startTestStack({
    samples: {
      sample: async (pool, payload, { onStart, onDeltas }) => {
        asked.push([pool, payload]);
        if (answer.ok) onStart?.();
        for (const some of deltas) onDeltas?.(some);
        return answer;
      },
    },
    limits: { sample_timeout_ms: 5_000 },
  });
  t.teardown(() => stack.close());
  const job = await stack.createJob();
  await claimAndTrain(stack.store, job.id, { steps: 7 });
  const page: Page<Checkpoint> = (await stack.request({ url: `/v1/jobs/${job.id}/checkpoints` })).json();
  const checkpoint = page.data[0] as Checkpoint;
  await stack.objects.put(`${checkpoint.prefix}/MANIFEST.json`, Buffer.from('{}'));
  const sample = (payload: object, id = checkpoint.id) =>
    stack.request({ method: 'POST', url: `/v1/checkpoints/${id}/sample`, payload });

  t.test('is sent to the pool of its job, with every option', async (t) => {
    const reply = await sample({ prompt: 'to', temperature: 0.5, top_p: 0.9 });
    t.equal(reply.statusCode, 200);
    t.same(reply.json(), {
      model: checkpoint.id,
      step: 7,
      prompt: 'to',
      choices: [{ index: 0, text: ' be', finish_reason: 'stop', logprobs: [] }],
      usage,
    });
    t.equal(stack.app.services.keyWatch.size, 0, 'nothing of an answered request stays');
    const [pool, payload] = asked.at(-1) ?? [];
    t.equal(pool, 'default');
    t.match(payload, {
      project: 'default',
      model: checkpoint.id,
      source: { job_id: job.id, checkpoint: { id: checkpoint.id, prefix: checkpoint.prefix } },
      request: {
        prompt: 'to',
        max_tokens: 128,
        temperature: 0.5,
        top_k: 0,
        top_p: 0.9,
        seed: 1,
        stop: [],
        n: 1,
      },
    });
  });

  t.test('is streamed, each character once', async (t) => {
    const delta = (text: string) => ({ index: 0, text, logprobs: [] });
    answer = replyOf('to', ' be or not');
    deltas = [[delta(' b')], [delta('e'), delta(' ')], [delta('o')], [delta('r not')]];
    const reply = await sample({ prompt: 'to', stream: true });
    t.equal(reply.statusCode, 200);
    t.match(reply.headers['content-type'], /^text\/event-stream/);
    const events = reply.payload
      .trim()
      .split('\n\n')
      .map((event) => event.split('\n'));
    const texts = events
      .filter(([name]) => name === 'event: delta')
      .map(([, data = '']) => JSON.parse(data.slice(6)).text);
    t.strictSame(texts, [' b', 'e', ' ', 'o', 'r not']);
    t.equal(events.at(-1)?.[0], 'event: end');
    t.strictSame(JSON.parse(events.at(-1)?.[1]?.slice(6) ?? ''), {
      model: checkpoint.id,
      step: 7,
      prompt: 'to',
      choices: [{ index: 0, finish_reason: 'stop' }],
      usage,
    });
    deltas = [[{ ...delta('é'), logprobs: LOGPROBS }]];
    const whole = await sample({ prompt: 'to', logprobs: 1, stream: true });
    const line = whole.payload.split('\n').find((text) => text.startsWith('data: '));
    t.strictSame(JSON.parse(line?.slice(6) ?? '').logprobs, WIRE_LOGPROBS);
    deltas = [];
    answer = { ok: false, error: { code: 'model_does_not_fit', message: 'it needs more memory' } };
    const refused = await sample({ prompt: 'to', stream: true });
    t.match(refused, { statusCode: 503, headers: { 'retry-after': /\d/ } });
    t.equal(
      refused.json<Problem>().code,
      'model_does_not_fit',
      'an error before the first text has its status',
    );
    deltas = [[delta(' b')]];
    const broken = await sample({ prompt: 'to', stream: true });
    t.match(broken.payload, /event: error\ndata: .*"code":"model_does_not_fit"/, 'a later one is an event');
    deltas = [];
    answer = replyOf('to', ' be');
  });

  t.test('with many log-probabilities is written in pieces, and is the same', async (t) => {
    const tokens = Array.from({ length: 1_000 }, (_, at) => ({ token: `t${at}`, logprob: -at, top: [] }));
    const long = replyOf('to', ' be');
    if (long.ok) Object.assign(long.sample.choices[0] ?? {}, { logprobs: tokens });
    answer = long;
    const reply = await sample({ prompt: 'to', logprobs: 0, max_tokens: 1_000 });
    t.match(reply.headers['content-type'], /^application\/json/);
    t.strictSame(
      reply.json<Sample>().choices[0]?.logprobs,
      tokens.map((token) => ({ ...token, bytes: [...Buffer.from(token.token)] })),
    );
    answer = replyOf('to', ' be');
  });

  t.test('the average of the weights requires a job that keeps one', async (t) => {
    const refused = (await sample({ prompt: 'to', weights: 'ema' })).json<Problem>();
    t.match(refused, { status: 422, errors: [{ pointer: '/weights', code: 'weights_missing' }] });
  });

  t.test('messages require a job with a chat template', async (t) => {
    const { id: dataset } = await stack.upload(CHATS, 'jsonl');
    const chatty = await stack.createJob({ data: { dataset, chat_template: '{{ messages }}' } });
    await claimAndTrain(stack.store, chatty.id, { steps: 1 });
    const [other] = (await stack.store.listCheckpoints(chatty.id)).data as [Checkpoint];
    await stack.objects.put(`${other.prefix}/MANIFEST.json`, Buffer.from('{}'));
    const messages = [{ role: 'user', content: 'to?' }];
    answer = replyOf('[user]to?', 'be');
    const reply = await sample({ messages }, other.id);
    t.match(reply.json(), { prompt: '[user]to?', choices: [{ text: 'be' }] });
    t.match(asked.at(-1)?.[1].request, { messages, max_tokens: 128 });
    const refused = (await sample({ messages })).json<Problem>();
    t.match(refused, { status: 422, errors: [{ pointer: '/messages', code: 'chat_template_missing' }] });
    const borrowed = { messages, chat_template: '{{ messages }}' };
    t.equal((await sample(borrowed)).statusCode, 200);
    t.match(asked.at(-1)?.[1].request, borrowed);
    for (const [body, code] of [
      [{ messages, chat_template: '{{ ' }, 'chat_template_invalid'],
      [{ prompt: 'to', chat_template: '{{ messages }}' }, 'unknown_field'],
    ] as const)
      t.match((await sample(body)).json(), { status: 422, errors: [{ pointer: '/chat_template', code }] });
  });

  t.test('the error of a worker is returned', async (t) => {
    answer = { ok: false, error: { code: 'shard_corrupt', message: 'bytes of chunk 3 are wrong' } };
    t.equal((await sample({ prompt: 'to' })).statusCode, 500);
    answer = { ok: false, error: { code: 'no_such_code', message: 'the core says no' } };
    t.equal((await sample({ prompt: 'to' })).json<Problem>().code, 'native_error');
  });

  t.test('an uploaded model answers, too', async (t) => {
    const files = modelFolder().set('chat_template.jinja', Buffer.from('{{ messages }}'));
    const model = (await upload(stack, await tarOf(files))).json<Model>();
    answer = replyOf('to', ' be');
    const messages = [{ role: 'user', content: 'to?' }];
    const ask = (payload: object, query = '') =>
      stack.request({ method: 'POST', url: `/v1/models/${model.id}/sample${query}`, payload });
    const reply = await ask({ messages }, '?pool=other');
    t.match(reply.json(), { model: model.id, step: null, choices: [{ text: ' be' }] });
    t.match(asked.at(-1), ['other', { source: { model_id: model.id }, request: { messages } }]);
    t.equal((await ask({ prompt: 'to' })).statusCode, 200);
    t.equal(asked.at(-1)?.[0], 'default');
    t.match((await ask({ prompt: 'to', weights: 'ema' })).json(), { errors: [{ pointer: '/weights' }] });
  });

  t.test('bad requests', async (t) => {
    const count = asked.length;
    const long = { type: 'object', description: 'x'.repeat(200_000) };
    const unsupported = { type: 'object', properties: { a: { not: {} } } };
    const refused: [object, string][] = [
      [{}, ''],
      [{ prompt: 'to', messages: [{ role: 'user', content: 'to' }] }, ''],
      [{ messages: [] }, '/messages'],
      [{ messages: [{ role: 'user', content: 'to' }] }, '/messages'],
      [{ prompt: '' }, '/prompt'],
      [{ prompt: 'to', max_tokens: 0 }, '/max_tokens'],
      [{ prompt: 'to', temperature: -1 }, '/temperature'],
      [{ prompt: 'to', top_p: 0 }, '/top_p'],
      [{ prompt: 'to', top_q: 0 }, '/top_q'],
      [{ prompt: 'to', stop: ['a', 'b', 'c', 'd', 'e'] }, '/stop'],
      [{ prompt: 'to', n: 17 }, '/n'],
      [{ prompt: 'to', logprobs: 21 }, '/logprobs'],
      [{ prompt: 'to', logprobs: 20, n: 2, max_tokens: 32_768 }, '/logprobs'],
      [{ prompt: 'to', response_format: { type: 'json' } }, '/response_format'],
      [
        { prompt: 'to', response_format: { type: 'json_schema', json_schema: { schema: unsupported } } },
        '/response_format/json_schema/schema/properties/a/not',
      ],
      [{ prompt: 'to', tool_choice: 'required' }, '/tool_choice'],
      [
        { prompt: 'to', response_format: { type: 'json_schema', json_schema: { schema: long } } },
        '/response_format/json_schema/schema',
      ],
    ];
    for (const [payload, pointer] of refused) {
      const problem = (await sample(payload)).json<Problem>();
      t.match(problem, { code: 'validation_failed' });
      t.strictSame(
        problem.errors?.map((error) => error.pointer),
        [pointer],
        JSON.stringify(payload),
      );
    }
    t.equal(asked.length, count, 'no worker was called');
  });

  t.test('an unknown checkpoint', async (t) => {
    const none = await sample({ prompt: 'to' }, 'ckpt_00000000000000000000000000');
    t.equal(none.json<Problem>().code, 'checkpoint_not_found');
    await stack.objects.delete([`${checkpoint.prefix}/MANIFEST.json`]);
    t.equal((await sample({ prompt: 'to' })).json<Problem>().code, 'checkpoint_not_found');
  });
});
