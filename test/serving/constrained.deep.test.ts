/** Answers of a real worker that follow a schema. */
import { Ajv } from 'ajv';
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { Sample, SampleRequest } from '../../contracts/index.js';
import { startStack } from '../support/stack.js';
import { tinyJob } from '../support/zero-specs.js';

const TEMPLATE =
  '{% if tools %}TOOLS {{ tools | tojson }}\n{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content or "" }}' +
  '{% for c in m.tool_calls or [] %}<call>{"name": "{{ c.function.name }}", "args": {{ c.function.arguments | tojson }}}</call>{% endfor %}' +
  '{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}';

const { client } = await startStack(t);
const chats = Array.from({ length: 40 }, (_, index) => ({
  messages: [
    { role: 'user', content: `What is ${index}?` },
    { role: 'assistant', content: `A number: ${'The fleet answers. '.repeat(4)}` },
  ],
}));
const lines = chats.map((chat) => `${JSON.stringify(chat)}\n`).join('');
const { id: dataset } = await client.datasets.create('chats', Buffer.from(lines), 'jsonl');
const spec = tinyJob({ name: 'one', dataset });
const { id: job } = await client.jobs.create({ ...spec, data: { ...spec.data, chat_template: TEMPLATE } });
t.equal((await client.jobs.until(job, () => false)).state, 'succeeded');
const [checkpoint] = await collect(client.jobs.checkpoints(job));

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 12 },
    kind: { enum: ['a', 'größer', null] },
    list: { type: 'array', items: { type: 'boolean' }, minItems: 1, maxItems: 3 },
  },
  required: ['name', 'kind', 'list'],
  additionalProperties: false,
};
const responseFormat = { type: 'json_schema' as const, json_schema: { name: 'x', schema } };
const request: SampleRequest = { prompt: 'The fleet', max_tokens: 400, temperature: 2, seed: 3 };
const ask = (more: Partial<SampleRequest>) =>
  client.samples.create(checkpoint?.id ?? '', { ...request, ...more });
const texts = ({ choices }: Sample) => choices.map(({ text }) => text);

t.test('each answer satisfies the schema, with the same bits alone and among others', async (t) => {
  const validate = new Ajv({ strict: false }).compile(schema);
  const alone = await ask({ response_format: responseFormat, logprobs: 1 });
  const crowd = Array.from({ length: 16 }, (_, index) =>
    ask({ seed: index, max_tokens: 60, ...(index % 2 === 0 && { response_format: responseFormat }) }),
  );
  const several = await ask({ response_format: responseFormat, seed: 1, n: 4, logprobs: 1 });
  await Promise.all(crowd);
  t.strictSame({ ...several.choices[2], index: 0 }, alone.choices[0]);
  t.equal(new Set(texts(several)).size, 4);
  for (const { text, finish_reason } of several.choices) {
    t.equal(finish_reason, 'stop');
    t.ok(validate(JSON.parse(text)), text);
  }
  const [{ text = '', logprobs = [] } = {}] = alone.choices;
  t.same(Buffer.from(logprobs.flatMap(({ bytes }) => bytes)).toString(), text);
  let streamed = '';
  const stream = client.samples.stream(checkpoint?.id ?? '', { ...request, response_format: responseFormat });
  for await (const delta of stream) streamed += delta.text;
  t.equal(streamed, text);
  const longest = await ask({ response_format: responseFormat, max_tokens: logprobs.length });
  t.match(longest.choices, [{ text, finish_reason: 'stop' }], 'complete with the last token');
  const cut = await ask({ response_format: responseFormat, max_tokens: logprobs.length - 1 });
  t.match(cut.choices, [{ text: text.slice(0, -1), finish_reason: 'length' }]);
});

t.test('a required call has arguments of its schema', async (t) => {
  const tool = (name: string, parameters: Record<string, unknown>) => ({
    type: 'function' as const,
    function: { name, parameters },
  });
  const integer = { type: 'object', properties: { n: { enum: [1, 22, 333] } }, required: ['n'] };
  const tools = [tool('one', integer), tool('other', schema)];
  const chat = { prompt: undefined, messages: [{ role: 'user', content: 'a' }], tools };
  const named = await ask({ ...chat, tool_choice: { type: 'function', function: { name: 'one' } } });
  const [choice] = named.choices;
  t.match(choice, { text: '', finish_reason: 'tool_calls', tool_calls: [{ function: { name: 'one' } }] });
  t.ok([1, 22, 333].includes(JSON.parse(choice?.tool_calls?.[0]?.function.arguments ?? '').n));
  const validate = new Ajv({ strict: false });
  const required = await ask({ ...chat, tool_choice: 'required', n: 8 });
  for (const { tool_calls = [], finish_reason } of required.choices) {
    t.equal(finish_reason, 'tool_calls');
    t.equal(tool_calls.length, 1);
    const called = tools.find(({ function: { name } }) => name === tool_calls[0]?.function.name);
    t.ok(
      validate.validate(
        called?.function.parameters ?? false,
        JSON.parse(tool_calls[0]?.function.arguments ?? ''),
      ),
    );
  }
  t.equal(new Set(required.choices.map((each) => each.tool_calls?.[0]?.function.name)).size, 2);
});

t.test('a schema that cannot be guaranteed is refused by the place of the keyword', async (t) => {
  const pattern = { type: 'object', properties: { a: { type: 'string', pattern: '^a' } } };
  await t.rejects(ask({ response_format: { type: 'json_schema', json_schema: { schema: pattern } } }), {
    code: 'validation_failed',
    message: /pattern/,
  });
});
