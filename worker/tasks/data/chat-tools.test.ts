// Compares chats with tools with the output of transformers (golden/make_golden_tools.py).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type JsonlChat, parseLine } from '../../../contracts/jsonl/line.js';
import { ChatTemplate } from '../../../formats/encoding/chat-template.js';
import { projectRoot } from '../../../platform/process/root.js';

interface Golden {
  template: string;
  cases: { chat: object; text: string; learned: string[] }[];
}
const golden: Golden = JSON.parse(
  readFileSync(join(projectRoot(), 'worker', 'tasks', 'data', 'golden', 'tools.json'), 'utf8'),
);

function chatOf(line: object): JsonlChat {
  const document = parseLine(JSON.stringify(line));
  if (!('messages' in document)) throw new Error('the line is no chat');
  return document;
}

for (const [index, { chat, text, learned }] of golden.cases.entries())
  t.test(`chat ${index}: the same text and the same learned parts`, async (t) => {
    const rendered = new ChatTemplate(golden.template).render(chatOf(chat));
    t.equal(rendered.text, text);
    t.same(
      rendered.learned.map(({ begin, end }) => text.slice(begin, end)),
      learned,
    );
  });

t.test('a template without tags receives the tools for every turn', async (t) => {
  const template =
    '{{ tools | tojson }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ m.tool_calls | tojson }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}';
  const call = { function: { name: 'f' } };
  const messages = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: 'b', tool_calls: [call] },
  ];
  const { text, learned } = new ChatTemplate(template).render(chatOf({ messages, tools: [call] }));
  t.equal(text, '[{"function": {"name": "f"}}][user]anull[assistant]b[{"function": {"name": "f"}}]');
  t.same(
    learned.map(({ begin, end }) => text.slice(begin, end)),
    ['b[{"function": {"name": "f"}}]'],
  );
});

t.test('a template that ignores tools is refused', async (t) => {
  const plain = new ChatTemplate('{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}');
  const messages = [{ role: 'assistant', content: 'a' }];
  const calling = [{ role: 'assistant', content: 'a', tool_calls: [{ function: { name: 'f' } }] }];
  const refused = (message: RegExp) => ({ code: 'chat_template_invalid', message });
  t.throws(
    () => plain.render(chatOf({ messages, tools: [{}] })),
    refused(/does not render the tools of the chat/),
  );
  t.throws(
    () => plain.render(chatOf({ messages: calling })),
    refused(/does not render the tool_calls of message 0 \(role assistant\) of the chat/),
  );
  t.equal(plain.render(chatOf({ messages, tools: [] })).text, 'assistant: a\n');
});

t.test('every field of a message is available to the template', async (t) => {
  const template = new ChatTemplate(
    '{% for m in messages %}{{ m.name }}{{ m.nested.x }}{{ m.content }}{% endfor %}',
  );
  const messages = [{ role: 'assistant', content: 'a', name: 'n', nested: { x: 3 } }];
  t.equal(template.render(chatOf({ messages })).text, 'n3a');
});

t.test('a template uses the date of the spec', async (t) => {
  const source =
    '\n{% if strftime_now is defined %}{{ strftime_now("%d %b %Y") }}{% else %}no date{% endif %}';
  const chat = chatOf({ messages: [{ role: 'assistant', content: 'a' }] });
  t.equal(new ChatTemplate(source, { date: '2024-02-29' }).render(chat).text, '\n29 Feb 2024');
  t.equal(new ChatTemplate(source).render(chat).text, '\nno date');
  const odd = new ChatTemplate('{{ strftime_now("%Q") }}', { date: '2024-02-29' });
  t.throws(() => odd.render(chat), {
    code: 'chat_template_invalid',
    message: /strftime_now does not know %Q/,
  });
});

t.test('a template that needs a content gets an empty one beside calls', async (t) => {
  const template = new ChatTemplate(
    "{% for m in messages %}[{{ m.role }}]{% if '</think>' in m.content %}{% endif %}{{ m.tool_calls | tojson }}{% endfor %}",
  );
  const call = { function: { name: 'f' } };
  const answer = { role: 'assistant', tool_calls: [call] };
  for (const message of [answer, { ...answer, content: null }])
    t.match(
      template.render(chatOf({ messages: [message] })).text,
      '[assistant][{"function": {"name": "f"}}]',
    );
});
