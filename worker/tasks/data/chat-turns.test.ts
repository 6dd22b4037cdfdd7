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

/** Writes reasoning of the last turn only, and ends it with another token. */
const CHANGING =
  "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}{% set parts = m.content.split('</think>') %}{% if loop.last %}<think>{{ (m.reasoning_content or parts[0].split('<think>')[-1]) | trim }}</think>{{ parts[-1].strip('\\n') }}<end>{% else %}{{ parts[-1].strip('\\n') }}<next>{% endif %}{% else %}{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}[assistant]<think>{% endif %}";
const REASONED = [
  turn('user', 'q'),
  turn('assistant', '<think> 1 </think>\n a \n'),
  turn('user', 'r'),
  { ...turn('assistant', 'b'), reasoning_content: '2' },
];
type Rules = NonNullable<ConstructorParameters<typeof ChatTemplate>[1]>['rules'];

function textsOf(template: string, messages: object[], rules: Rules) {
  return new ChatTemplate(template, { rules }).renderAll(chatOf({ messages })).map(({ text, learned }) => ({
    text,
    learned: learned.map(({ begin, end }) => text.slice(begin, end)),
  }));
}

t.test('of a template that changes earlier turns, what its text holds is learned', async (t) => {
  t.same(textsOf(CHANGING, REASONED, { turns: 'together', reasoning: 'learn' }), [
    {
      text: '[user]q[assistant] a <next>[user]r[assistant]<think>2</think>b<end>',
      learned: [' a <next>', '2</think>b<end>'],
    },
  ]);
});

t.test('every turn may be a text of its own, with the messages before it', async (t) => {
  t.same(textsOf(CHANGING, REASONED, { turns: 'each', reasoning: 'learn' }), [
    { text: '[user]q[assistant]<think>1</think> a <end>', learned: ['1</think> a <end>'] },
    {
      text: '[user]q[assistant] a <next>[user]r[assistant]<think>2</think>b<end>',
      learned: ['2</think>b<end>'],
    },
  ]);
  const silent = REASONED.with(1, { ...REASONED[1], weight: 0 } as never);
  t.equal(textsOf(CHANGING, silent, { turns: 'each', reasoning: 'learn' }).length, 1, 'none of weight 0');
  t.same(
    textsOf(TURNS, REASONED, { turns: 'each', reasoning: 'learn' }).map(({ learned }) => learned),
    [['<think> 1 </think>\n a \n[/]'], ['b[/]']],
    'generation tags of earlier turns have no effect',
  );
});

t.test('reasoning may be left out of the loss', async (t) => {
  const mask = { turns: 'each', reasoning: 'mask' } as const;
  t.same(
    textsOf(CHANGING, REASONED, mask).map(({ learned }) => learned),
    [['</think> a <end>'], ['</think>b<end>']],
  );
  t.same(
    textsOf(TURNS, REASONED, { ...mask, turns: 'together' }).map(({ learned }) => learned),
    [['<think>', '</think>\n a \n[/]', 'b[/]']],
  );
  const spelled = '{% for m in messages %}{{ m.reasoning_content | tojson }}{{ m.content }}{% endfor %}';
  t.same(textsOf(spelled, REASONED.slice(3), mask), [{ text: '"2"b', learned: ['"', '"b'] }]);
});

t.test('texts keep their origin through macros, blocks, slices and filters', async (t) => {
  const template =
    "{% macro shown(m) %}  {{ m.content | upper }}{{ m.name[1:] }}  {% endmacro %}{% for m in messages %}[{{ m.role }}{% set block %}({{ shown(m) | trim }}){% endset %}{% filter replace('B', 'c') %}{{ block }}{% endfilter %}]{% endfor %}";
  const specialTexts = /<B>|xy/gu;
  const messages = [{ ...turn('assistant', 'a<b>'), name: 'xxy' }];
  const rendered = new ChatTemplate(template, { special_texts: specialTexts }).render(chatOf({ messages }));
  t.equal(rendered.text, '[assistant(A<c>xy)]');
  t.same(rendered.literal, [rendered.text.indexOf('xy') + 1], 'a special token that a chat contains is text');
});

t.test('whether tools are called in parallel reaches the template', async (t) => {
  const line = { messages: [turn('assistant', 'a')], parallel_tool_calls: false };
  const template = '{% for m in messages %}{{ m.content }}{% endfor %}{{ parallel_tool_calls }}';
  t.equal(new ChatTemplate(template).render(chatOf(line)).text, 'afalse');
});

t.test('a template that adds an object to a text is refused', async (t) => {
  const call = { function: { name: 'f', arguments: '{"a": 1}' } };
  const messages = [{ role: 'assistant', tool_calls: [call] }];
  const template = "{% for m in messages %}{{ 'x' + m.tool_calls[0].function.arguments }}{% endfor %}";
  t.throws(() => learnedOf(template, messages), {
    code: 'chat_template_invalid',
    message: /the filter tojson/,
  });
});
