/** Turns that are not trained on, roles that templates do not know, and what JavaScript's values would change. */
import t from 'tap';
import { type JsonlChat, parseLine } from '../../../contracts/jsonl/line.js';
import { ChatTemplate } from '../../../formats/encoding/chat-template.js';

function chatOf(line: object | string): JsonlChat {
  const document = parseLine(typeof line === 'string' ? line : JSON.stringify(line));
  if (!('messages' in document)) throw new Error('the line is no chat');
  return document;
}

const TURNS =
  "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}{% generation %}{{ m.content }}[/]{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
const UNMARKED = TURNS.replaceAll(/\{% (end)?generation %\}/g, '');
const turn = (role: string, content: string, weight?: number) => ({
  role,
  content,
  ...(weight !== undefined && { weight }),
});

function learnedOf(template: string, messages: object[]): string[] {
  const { text, learned } = new ChatTemplate(template).render(chatOf({ messages }));
  return learned.map(({ begin, end }) => text.slice(begin, end));
}

t.test('turns of weight 0 are read and not learned', async (t) => {
  const messages = [
    turn('user', 'Hi'),
    turn('assistant', 'bad', 0),
    turn('user', 'x'),
    turn('assistant', 'good', 1),
  ];
  const first = [
    turn('assistant', 'bad', 0),
    turn('user', 'x'),
    turn('assistant', '', 0),
    turn('assistant', 'good'),
  ];
  for (const template of [TURNS, UNMARKED]) {
    t.same(learnedOf(template, messages), ['good[/]']);
    t.same(learnedOf(template, first), ['good[/]']);
    t.equal(
      new ChatTemplate(template).render(chatOf({ messages })).text,
      '[user]Hi[assistant]bad[/][user]x[assistant]good[/]',
    );
  }
  const shown = new ChatTemplate(
    '{% for m in messages %}{% generation %}{{ m | tojson }}{% endgeneration %}{% endfor %}',
  );
  t.notMatch(shown.render(chatOf({ messages })).text, /weight/, 'templates do not get the weight');
});

t.test('a template may mark other turns for other ends of a chat', async (t) => {
  const last =
    '{% for m in messages %}[{{ m.role }}]{% if loop.last %}{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}';
  const messages = [turn('assistant', 'a', 0), turn('user', 'b'), turn('assistant', 'c')];
  t.same(learnedOf(last, messages), ['c']);
  t.same(learnedOf(last, [turn('assistant', 'a'), turn('user', 'b'), turn('assistant', 'c', 0)]), []);
});

t.test('the role developer is system, in answers as well', async (t) => {
  const messages = [turn('developer', 'Be terse.'), turn('user', 'q'), turn('assistant', 'a')];
  const template = new ChatTemplate(TURNS);
  t.equal(template.render(chatOf({ messages })).text, '[system]Be terse.[user]q[assistant]a[/]');
  t.equal(
    template.generationPrompt(messages.slice(0, 2).map(({ role, content }) => ({ role, content }))).text,
    '[system]Be terse.[user]q[assistant]',
  );
});

t.test(
  'a message that does not appear in the text is refused, or shown if it is of the system',
  async (t) => {
    const known =
      "{% for m in messages %}{% if m.role in ['user', 'assistant'] %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
    const rendered = (role: string, content: string) =>
      new ChatTemplate(known).render(
        chatOf({ messages: [turn(role, content), turn('user', 'q'), turn('assistant', 'a')] }),
      );
    t.same(rendered('system', 'Be terse.').missing, ['system']);
    t.same(rendered('developer', 'a').missing, ['system']);
    t.throws(() => rendered('ipython', 'a'), {
      code: 'chat_template_invalid',
      message: /does not render message 0 \(role ipython\) of the chat/,
    });
    const tool = [
      turn('user', 'q'),
      turn('assistant', 'x'),
      turn('tool', 'a long result of a tool'),
      turn('assistant', 'a'),
    ];
    t.throws(() => learnedOf(known, tool), { message: /message 2 \(role tool\)/ });
    t.same(learnedOf(known, [turn('system', ''), turn('user', 'q'), turn('assistant', 'a')]), ['a']);
    const upper = UNMARKED.replaceAll('m.content', 'm.content | upper');
    t.same(learnedOf(upper, [turn('system', 'short'), turn('user', 'q'), turn('assistant', 'a')]), ['A[/]']);
  },
);

t.test('numbers, and names such as "2", are as in the line', async (t) => {
  const args = '{"user_id": 9007199254740993, "b": 1, "2": 1e24, "1": [1.0, 1e400, -0, 0.5], "s": "1.0"}';
  const line = `{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": ${args}}}]}], "tools": [{"default": 3.0}]}`;
  const rendered = (template: string) => new ChatTemplate(template).render(chatOf(line)).text;
  const call =
    '{% generation %}{% endgeneration %}{% set args = messages[1].tool_calls[0].function.arguments %}{{ tools | tojson }}';
  t.equal(rendered(`${call}{{ args | tojson }}`), `[{"default": 3.0}]${args}`);
  t.equal(
    rendered(`${call}{% for name, value in args.items() %}{{ name }}={{ value }};{% endfor %}`).split(';')[0],
    '[{"default": 3.0}]user_id=9007199254740993',
  );
  t.equal(
    rendered(`${call}{{ args['2'] }} {{ args['1'][0] | string }} {{ 'n' ~ args.user_id }}`),
    '[{"default": 3.0}]1e24 1.0 n9007199254740993',
  );
  t.equal(
    rendered(
      `${call}{{ args.user_id is number }} {{ args.user_id is integer }} {{ args['2'] is number }} {{ args.s is string }} {{ args.user_id > 5 }}`,
    ),
    '[{"default": 3.0}]true true true true true',
  );
});
