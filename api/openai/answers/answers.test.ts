/** Answers through the official client, with a worker that is played. */
import OpenAI, { type APIError } from 'openai';
import t from 'tap';
import type { CallFormat, SampleReply, SampleTask } from '../../../contracts/index.js';
import type { SampleCall } from '../../services.js';
import { ADMIN_KEY, startTestStack } from '../../testing/stack.js';
import { servedCheckpoint } from '../../testing/training.js';

const asked: SampleTask[] = [];
const token = (text: string) => ({ token: text, logprob: -0.5, top: [{ token: text, logprob: -0.5 }] });
/** The first byte of é. */
const part = { token: '\uFFFD', bytes: [0xc3], logprob: -2 };
const CALLS: CallFormat = {
  open: '<tool_call>',
  separator: null,
  close: '</tool_call>',
  name: ['name'],
  arguments: ['arguments'],
};
/** The answer of the worker. */
let text = 'yes é';
const usage = { prompt_tokens: 5, cached_tokens: 3, completion_tokens: 2 };
let refusal: { code: string; message: string } | null = null;
let holds = false;
let left: unknown = null;

async function play(request: SampleTask, { onStart, onDeltas, signal }: SampleCall): Promise<SampleReply> {
  asked.push(request);
  if (refusal !== null) return { ok: false, error: refusal };
  onStart?.();
  const form = request.tools.length > 0 ? { call_format: CALLS } : {};
  const [first, rest] = [text.slice(0, 3), text.slice(3)];
  const choices = Array.from({ length: request.n }, (_, index) => {
    const logprobs = request.logprobs === null ? [] : [token('yes'), { ...token(' é'), top: [part] }];
    onDeltas?.([{ index, ...form, text: first, logprobs: logprobs.slice(0, 1) }]);
    if (!holds)
      for (const [at, character] of (request.tools.length > 0 ? [...rest] : [rest]).entries())
        onDeltas?.([{ index, ...form, text: character, logprobs: at === 0 ? logprobs.slice(1) : [] }]);
    return { index, ...form, text, finish_reason: 'stop' as const, logprobs };
  });
  if (holds)
    await new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        left = signal.reason;
        reject(signal.reason as Error);
      });
    });
  return { ok: true, sample: { prompt: 'p', choices, usage } };
}

const stack = await startTestStack({
  samples: { sample: (_, { request }, call) => play(request, call) },
});
t.teardown(() => stack.close());
const client = new OpenAI({ baseURL: `${await stack.listen()}/openai/v1`, apiKey: ADMIN_KEY, maxRetries: 0 });
const { checkpoint } = await servedCheckpoint(stack);
const model = `ft:tiny:default::${checkpoint.id}`;
const messages = [{ role: 'user' as const, content: 'is 4 even' }];

t.test('a chat completion', async (t) => {
  const answer = await client.chat.completions.create({
    model,
    messages: [
      {
        role: 'developer',
        content: [
          { type: 'text', text: 'be' },
          { type: 'text', text: ' brief' },
        ],
        name: 'admin',
      },
      ...messages,
    ],
    max_completion_tokens: 7,
    temperature: 0.5,
    top_p: 0.9,
    seed: 3,
    stop: '\n',
    n: 2,
    logprobs: true,
    top_logprobs: 1,
    frequency_penalty: 0.5,
    presence_penalty: null,
    logit_bias: { '50': -100 },
    response_format: { type: 'text' },
    user: 'someone',
  });
  t.match(asked.at(-1), {
    messages: [
      { role: 'developer', content: [{ text: 'be' }, { text: ' brief' }], name: 'admin' },
      ...messages,
    ],
    max_tokens: 7,
    temperature: 0.5,
    top_p: 0.9,
    seed: 3,
    stop: ['\n'],
    presence_penalty: 0,
    frequency_penalty: 0.5,
    logit_bias: { 50: -100 },
    n: 2,
    logprobs: 1,
  });
  t.match(answer, {
    id: /^chatcmpl-/,
    object: 'chat.completion',
    model,
    choices: [
      { index: 0, message: { role: 'assistant', content: 'yes é', refusal: null }, finish_reason: 'stop' },
      { index: 1 },
    ],
    usage: {
      prompt_tokens: 5,
      completion_tokens: 2,
      total_tokens: 7,
      prompt_tokens_details: { cached_tokens: 3 },
    },
  });
  t.strictSame(answer.choices[0]?.logprobs?.content?.[1], {
    token: ' é',
    logprob: -0.5,
    bytes: [32, 195, 169],
    top_logprobs: [{ token: '\uFFFD', logprob: -2, bytes: [195] }],
  });
  await client.chat.completions.create({ model, messages });
  t.match(asked.at(-1), { max_tokens: 32_768, temperature: 1, top_p: 1, n: 1, logprobs: null, stop: [] });
});

t.test('a streamed chat completion', async (t) => {
  const stream = await client.chat.completions.create({
    model,
    messages,
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  t.strictSame(
    chunks.map(({ choices: [choice] }) => [choice?.delta, choice?.finish_reason]),
    [
      [{ role: 'assistant', content: '', refusal: null }, null],
      [{ content: 'yes' }, null],
      [{ content: ' é' }, null],
      [{}, 'stop'],
      [undefined, undefined],
    ],
  );
  t.match(chunks.at(-1), { object: 'chat.completion.chunk', choices: [], usage: { total_tokens: 7 } });
  t.ok(
    chunks.slice(0, -1).every(({ usage }) => usage === null),
    'all others say that they have none',
  );
  t.equal(new Set(chunks.map(({ id }) => id)).size, 1);
});

t.test('a completion, whole and streamed', async (t) => {
  const answer = await client.completions.create({ model, prompt: 'is 4', logprobs: 1, seed: -4 });
  t.match(asked.at(-1), { prompt: 'is 4', max_tokens: 16, logprobs: 1, seed: 2 ** 53 - 4 });
  t.match(answer, { object: 'text_completion', choices: [{ text: 'yes é', finish_reason: 'stop' }] });
  t.strictSame(answer.choices[0]?.logprobs, {
    tokens: ['yes', ' é'],
    token_logprobs: [-0.5, -0.5],
    top_logprobs: [{ yes: -0.5 }, { 'bytes:\\xc3': -2 }],
    text_offset: [0, 3],
  });
  let text = '';
  for await (const chunk of await client.completions.create({ model, prompt: ['is 4'], stream: true })) {
    text += chunk.choices[0]?.text ?? '';
    t.notOk('usage' in chunk, 'nobody asked for it');
  }
  t.equal(text, 'yes é');
});

t.test('calls of tools, whole and streamed', async (t) => {
  const call = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>';
  text = `I add.\n${call}`;
  const tools = [
    {
      type: 'function' as const,
      function: { name: 'add', parameters: { type: 'object', properties: { a: { type: 'number' } } } },
    },
  ];
  const request = { model, messages, tools, seed: 4, parallel_tool_calls: false };
  const whole = await client.chat.completions.create(request);
  t.match(asked.at(-1), { tools, tool_choice: 'auto', parallel_tool_calls: false });
  const [choice] = whole.choices;
  t.match(choice, { finish_reason: 'tool_calls', message: { role: 'assistant', content: 'I add.' } });
  t.match(choice?.message.tool_calls, [
    { type: 'function', id: /^[A-Za-z0-9]{9}$/, function: { name: 'add', arguments: '{"a": 1, "b": 2}' } },
  ]);
  const streamed = await client.chat.completions.stream(request).finalChatCompletion();
  t.match(streamed.choices[0], { finish_reason: 'tool_calls', message: { content: 'I add.' } });
  t.match(
    streamed.choices[0]?.message.tool_calls,
    JSON.parse(JSON.stringify(choice?.message.tool_calls)),
    'the same calls with the same ids',
  );
  text = call;
  const silent = await client.chat.completions.create({ ...request, tool_choice: 'auto' });
  t.equal(silent.choices[0]?.message.content, null);
  text = 'no call <tool_call';
  const none = await client.chat.completions.create({ ...request, stream: true });
  let said = '';
  for await (const { choices } of none) {
    said += choices[0]?.delta.content ?? '';
    t.equal(choices[0]?.delta.tool_calls, undefined);
  }
  t.equal(said, text);
  text = 'yes é';
  const answered = [
    ...messages,
    { ...choice?.message, refusal: null } as OpenAI.ChatCompletionMessage,
    { role: 'tool' as const, tool_call_id: 'x', content: '3' },
  ];
  await client.chat.completions.create({ ...request, messages: answered });
  t.match(asked.at(-1)?.messages?.slice(1), [
    { role: 'assistant', content: 'I add.', tool_calls: [{ function: { arguments: '{"a": 1, "b": 2}' } }] },
    { role: 'tool', tool_call_id: 'x', content: '3' },
  ]);
});

t.test('the form of an answer and a required call', async (t) => {
  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
  const jsonSchema = { name: 'x', schema, strict: true };
  await client.chat.completions.create({
    model,
    messages,
    response_format: { type: 'json_schema', json_schema: jsonSchema },
  });
  t.match(asked.at(-1), { response_format: { type: 'json_schema', json_schema: jsonSchema } });
  await client.chat.completions.create({ model, messages, response_format: { type: 'json_object' } });
  t.match(asked.at(-1), { response_format: { type: 'json_object' } });
  text = '<tool_call>\n{"name": "f", "arguments": {"a": "b"}';
  const tools = [{ type: 'function' as const, function: { name: 'f', parameters: schema } }];
  for (const toolChoice of ['required', { type: 'function', function: { name: 'f' } }] as const) {
    const { choices } = await client.chat.completions.create({
      model,
      messages,
      tools,
      tool_choice: toolChoice,
    });
    t.match(asked.at(-1), { tool_choice: toolChoice });
    t.match(choices, [
      {
        finish_reason: 'tool_calls',
        message: { content: null, tool_calls: [{ function: { name: 'f', arguments: '{"a": "b"}' } }] },
      },
    ]);
  }
  text = 'yes é';
});

t.test('a model that is loading is an error that the client retries', async (t) => {
  refusal = { code: 'model_loading', message: 'a worker is loading the model' };
  for (const stream of [false, true]) {
    const call = client.chat.completions.create({ model, messages, stream });
    const error = (await call.then(
      () => null,
      (cause: unknown) => cause,
    )) as APIError | null;
    t.match(error, { status: 503, code: 'model_loading' });
    t.ok(Number(error?.headers?.get('retry-after')) > 0);
  }
  refusal = null;
});

t.test('a prompt that is too long is an error that clients know', async (t) => {
  refusal = { code: 'prompt_too_long', message: 'the prompt has 90 tokens, the model takes 64' };
  const wanted = { status: 400, code: 'context_length_exceeded', message: /90 tokens/ };
  for (const stream of [false, true]) {
    const chat = client.chat.completions.create({ model, messages, stream });
    await t.rejects(chat, { ...wanted, param: 'messages' });
    const completion = client.completions.create({ model, prompt: 'is 4', stream });
    await t.rejects(completion, { ...wanted, param: 'prompt' });
  }
  refusal = null;
});

t.test('a client that leaves in the middle ends the answer', async (t) => {
  holds = true;
  const stream = await client.chat.completions.create({ model, messages, stream: true });
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content === 'yes') break;
  while (left === null) await new Promise((resolve) => setTimeout(resolve, 20));
  holds = false;
  t.ok(left);
});
