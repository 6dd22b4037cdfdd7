import t from 'tap';
import type { ChatMessage, PromptRequest } from '../../../contracts/index.js';
import { BytesTokenizer } from '../../../formats/encoding/bytes-tokenizer.js';
import type { PromptTokenizer } from '../../../formats/encoding/prompt-tokenizer.js';
import { buildPrompt } from './prompt.js';

const TEMPLATE =
  '{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eot }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}';
const NO_CHATS = { chat_template: null, template_date: null, max_length: 1000 };
const MESSAGES = [{ role: 'user', content: 'Why?' }];

t.test('a prompt begins a document', async (t) => {
  const prompt = buildPrompt(new BytesTokenizer(), { prompt: 'to' }, NO_CHATS);
  t.strictSame(prompt, {
    text: 'to',
    tokens: [116, 111],
    end_tokens: [],
    end_text: '',
    call_format: null,
    constraint: null,
  });
  t.throws(() => buildPrompt(new BytesTokenizer(), { prompt: '' }, NO_CHATS), { code: 'tokenizer_invalid' });
  t.throws(() => buildPrompt(new BytesTokenizer(), { prompt: 'too' }, { ...NO_CHATS, max_length: 3 }), {
    code: 'prompt_too_long',
    message: /has 3 tokens; .* at most 3/,
  });
});

t.test('the template renders messages; the text after an answer ends it', async (t) => {
  const chatTemplate = `{{ strftime_now('%F') }} ${TEMPLATE.replace('{{ eot }}', '\n---\n')}`;
  const data = { ...NO_CHATS, chat_template: chatTemplate, template_date: '2024-02-29' };
  const { text, tokens, ...ends } = buildPrompt(new BytesTokenizer(), { messages: MESSAGES }, data);
  t.equal(text, '2024-02-29 [user]Why?\n---\n[assistant]');
  t.equal(Buffer.from(tokens).toString(), text);
  t.strictSame(ends, { end_tokens: [], end_text: '---', call_format: null, constraint: null });
});

t.test('a special token after an answer ends it, also if another token ends a document', async (t) => {
  /** Bytes, with one additional special token. */
  const special: PromptTokenizer = {
    vocabSize: 258,
    end: 256,
    variables: { bos_token: '<s>', eot: '<end>' },
    specialTexts: /<end>/gu,
    encodePrompt: () => [],
    encodeChat: ({ text }) =>
      text.split(/(<end>)/).flatMap((part) => (part === '<end>' ? [257] : [...Buffer.from(part)])),
    decodeAfter: (_, tokens) => Buffer.from(tokens.filter((id) => id < 256)).toString(),
    textKind: (token) => (token < 256 ? 'text' : 'none'),
    bytesAfter: (_, token) => Uint8Array.of(token),
    decoderTable: null,
  };
  const prompt = buildPrompt(special, { messages: MESSAGES }, { ...NO_CHATS, chat_template: TEMPLATE });
  t.match(prompt, { text: '<s>[user]Why?<end>[assistant]', end_tokens: [257] });
  t.equal(prompt.tokens.at(-12), 257);
});

t.test('tools are rendered, and the prompt says how the template writes calls', async (t) => {
  const chatTemplate =
    '{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content }}' +
    '{% for c in m.tool_calls or [] %}<call>{"name": "{{ c.function.name }}", "args": {{ c.function.arguments | tojson }}}</call>{% endfor %}' +
    '{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}';
  const build = (more: object) =>
    buildPrompt(
      new BytesTokenizer(),
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'a' },
              { type: 'text', text: 'b' },
            ],
          },
          { role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: '{"x": 1.0}' } }] },
          { role: 'tool', content: '2' },
        ],
        tools: [{ type: 'function', function: { name: 'f' } }],
        ...more,
      },
      { ...NO_CHATS, chat_template: chatTemplate },
    );
  const { text, call_format } = build({});
  t.equal(
    text,
    '[{"type": "function", "function": {"name": "f"}}][user]ab' +
      '[assistant]<call>{"name": "f", "args": {"x": 1.0}}</call>[tool]2[assistant]',
  );
  t.same(call_format, {
    open: '<call>',
    separator: null,
    close: '</call>',
    name: ['name'],
    arguments: ['args'],
  });
  const none = build({ tool_choice: 'none' });
  t.notOk(none.text.includes('"type"'));
  t.equal(none.call_format, null);
  t.equal(build({}).constraint, null);
  const parameters = { type: 'object', properties: { a: { type: 'null' } } };
  const tools = [
    { type: 'function', function: { name: 'f' } },
    { type: 'function', function: { name: 'g.h', parameters } },
  ];
  const head = (name: string) => [...Buffer.from(`<call>{"name": "${name}", "args":`)];
  t.same(build({ tools, tool_choice: 'required' }).constraint, {
    choices: [
      { head: head('f'), schema: '{"type":"object"}' },
      { head: head('g.h'), schema: JSON.stringify(parameters) },
    ],
  });
  const choice = { type: 'function', function: { name: 'g.h' } };
  t.same(build({ tools, tool_choice: choice }).constraint?.choices.length, 1);
  const noCalls = { ...NO_CHATS, chat_template: '{{ tools | tojson }}{{ messages[0].content }}' };
  t.throws(
    () =>
      buildPrompt(
        new BytesTokenizer(),
        { messages: MESSAGES, tools, tool_choice: 'required' } as never,
        noCalls,
      ),
    { code: 'chat_template_invalid', message: /no call can be required/ },
  );
});

t.test('the form of an answer is part of its prompt', async (t) => {
  const constraintOf = (responseFormat: PromptRequest['response_format']) =>
    buildPrompt(new BytesTokenizer(), { prompt: 'to', response_format: responseFormat }, NO_CHATS).constraint;
  t.equal(constraintOf({ type: 'text' }), null);
  t.same(constraintOf({ type: 'json_object' }), { choices: [{ head: [], schema: '{"type":"object"}' }] });
  const schema = { type: 'object', properties: {} };
  t.same(constraintOf({ type: 'json_schema', json_schema: { schema } }), {
    choices: [{ head: [], schema: JSON.stringify(schema) }],
  });
});

t.test(
  'fields that are null are absent, and former names of calls are read as the current ones',
  async (t) => {
    const fields =
      '{% for m in messages %}[{{ m.keys() | list | join(",") }}]{% endfor %}{% if add_generation_prompt %}!{% endif %}';
    const textOf = (chatTemplate: string, messages: ChatMessage[]) =>
      buildPrompt(new BytesTokenizer(), { messages }, { ...NO_CHATS, chat_template: chatTemplate }).text;
    const absent = { name: null, tool_calls: null, function_call: null, refusal: null };
    t.equal(
      textOf(fields, [{ role: 'user', content: 'a', ...absent }]),
      textOf(fields, [{ role: 'user', content: 'a' }]),
    );
    const roles =
      '{% for m in messages %}[{{ m.role }}{{ m.tool_calls | tojson if m.tool_calls }}]{% endfor %}';
    t.equal(
      textOf(`${roles}{% for m in messages %}{{ m.content }}{% endfor %}`, [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: '', function_call: { name: 'f', arguments: '{"x": 1.0}' } },
        { role: 'function', name: 'f', content: 'b' },
      ]),
      '[user][assistant[{"type": "function", "function": {"name": "f", "arguments": {"x": 1.0}}}]][tool]ab',
    );
  },
);
