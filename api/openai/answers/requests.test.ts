/** How requests for answers are read: what is refused, and the messages. */
import OpenAI, { type APIError } from 'openai';
import t from 'tap';
import type { Problem, SampleReply, SampleTask } from '../../../contracts/index.js';
import { parseMessages } from '../../../contracts/jsonl/fields.js';
import { ADMIN_KEY, startTestStack } from '../../testing/stack.js';
import { servedCheckpoint } from '../../testing/training.js';

const REPLY: SampleReply = {
  ok: true,
  sample: {
    prompt: 'p',
    choices: [{ index: 0, text: 'yes', finish_reason: 'stop', logprobs: [] }],
    usage: { prompt_tokens: 5, cached_tokens: 3, completion_tokens: 2 },
  },
};

const asked: SampleTask[] = [];
const stack = await startTestStack({
  samples: {
    sample: async (_, { request }) => {
      asked.push(request);
      return REPLY;
    },
  },
});
t.teardown(() => stack.close());
const client = new OpenAI({ baseURL: `${await stack.listen()}/openai/v1`, apiKey: ADMIN_KEY, maxRetries: 0 });
const { checkpoint } = await servedCheckpoint(stack);
const model = `ft:tiny:default::${checkpoint.id}`;
const messages = [{ role: 'user' as const, content: 'is 4 even' }];

t.test('what is not supported is refused by its name', async (t) => {
  const refused = async (
    more: object,
    param: string,
    create = client.chat.completions.create.bind(client.chat.completions),
  ) => {
    const error = (await create({ model, messages, ...more } as never).then(
      () => null,
      (cause: unknown) => cause,
    )) as APIError | null;
    t.match(error, { status: 400, param }, JSON.stringify(more));
  };
  const count = asked.length;
  const tool = { type: 'function', function: { name: 'f' } };
  await refused({ tool_choice: 'required' }, 'tool_choice');
  await refused({ tools: [tool], tool_choice: { type: 'function', function: { name: 'g' } } }, 'tool_choice');
  await refused({ tools: [tool], tool_choice: { type: 'allowed_tools', allowed_tools: {} } }, 'tool_choice');
  const parameters = { type: 'object', properties: { a: { multipleOf: 2 } } };
  await refused(
    { tools: [{ type: 'function', function: { name: 'f', parameters } }], tool_choice: 'required' },
    'tools',
  );
  await refused({ tools: [tool], response_format: { type: 'json_object' } }, 'response_format');
  await refused({ response_format: { type: 'grammar' } }, 'response_format');
  await refused(
    { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'array' } } } },
    'response_format',
  );
  await refused({ tools: [{ type: 'custom', custom: { name: 'f' } }] }, 'tools');
  await refused({ functions: [{ name: 'f' }] }, 'functions');
  await refused({ frequency_penalty: 2.1 }, 'frequency_penalty');
  await refused({ logit_bias: { word: 1 } }, 'logit_bias');
  await refused({ logit_bias: { '1': 101 } }, 'logit_bias');
  await refused({ top_logprobs: 2 }, 'top_logprobs');
  await refused({ temperature: 3 }, 'temperature');
  await refused({ unheard_of: 1 }, 'unheard_of');
  const complete = client.completions.create.bind(client.completions) as never;
  await refused({ messages: undefined, prompt: ['a', 'b'] }, 'prompt', complete);
  await refused({ messages: undefined, prompt: 'a', echo: true }, 'echo', complete);
  t.equal(asked.length, count);
  await t.rejects(client.chat.completions.create({ model: 'none', messages }), {
    status: 404,
    code: 'model_not_found',
  });
});

t.test('messages are read as those of datasets and of the own API', async (t) => {
  const call = { name: 'f', arguments: '{"x": 1}' };
  const former = [
    ...messages,
    { role: 'assistant', content: null, function_call: call, refusal: null, name: null },
    { role: 'function', name: 'f', content: '1' },
  ];
  await client.chat.completions.create({ model, messages: former as never });
  t.same(asked.at(-1)?.messages, former, 'the worker reads them');
  const count = asked.length;
  const user = (fields: object) => [...messages, { role: 'user', content: 'x', ...fields }];
  const calls = (args: unknown) => [
    ...messages,
    { role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: args } }] },
  ];
  for (const [bad, pointer, isOfReader] of [
    [user({ content: [{ type: 'image_url', image_url: { url: 'x' } }] }), '/messages/1', true],
    [user({ content: null }), '/messages/1', true],
    [calls('[1]'), '/messages/1', true],
    [calls('{"a": 1, "a": 2}'), '/messages/1', true],
    [user({ audio: { id: 'a' } }), '/messages/1/audio', false],
    [user({ content: 3 }), '/messages/1/content', false],
    [user({ weight: 0 }), '/messages/1/weight', false],
    [[...messages, 'x'], '/messages/1', false],
    ['x', '/messages', false],
    [[], '/messages', false],
  ] as const) {
    const own = await stack.request({
      method: 'POST',
      url: `/v1/checkpoints/${checkpoint.id}/sample`,
      payload: { messages: bad },
    });
    const { errors = [] } = own.json<Problem>();
    t.equal(errors[0]?.pointer, pointer, own.body);
    if (isOfReader) t.throws(() => parseMessages(bad, '"messages"'), new Error(errors[0]?.message));
    const error = await client.chat.completions.create({ model, messages: bad as never }).catch((e) => e);
    t.match(error, { status: 400, param: 'messages' });
    t.equal(error.error.message, errors.map(({ message }) => `messages: ${message}`).join('; '));
  }
  t.equal(asked.length, count);
});

t.test('a text that is too long for a sample is told by its parameter', async (t) => {
  const count = asked.length;
  const long = 'a'.repeat(100_001);
  const wanted = { status: 400, code: 'validation_failed' };
  const chat = client.chat.completions.create({ model, messages: [{ role: 'user', content: long }] });
  await t.rejects(chat, { ...wanted, param: 'messages' });
  await t.rejects(client.completions.create({ model, prompt: long }), { ...wanted, param: 'prompt' });
  const many = { max_tokens: 1_000_000, n: 16, logprobs: 5 };
  await t.rejects(client.completions.create({ model, prompt: 'a', ...many }), {
    ...wanted,
    param: 'logprobs',
  });
  t.equal(asked.length, count);
});
