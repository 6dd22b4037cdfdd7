import t from 'tap';
import { BadLine } from './fields.js';
import { parseLine } from './line.js';

const parse = (line: object) => parseLine(JSON.stringify(line));
const chat = (...contents: string[]) => ({
  messages: contents.map((content, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content })),
  tools: null,
});

t.test("Alpaca's instructions are chats", async (t) => {
  t.same(parse({ instruction: 'Add.', input: '1, 2', output: '3', id: 4 }), chat('Add.\n\n1, 2', '3'));
  t.same(parse({ instruction: 'Add.', input: '', output: '3' }), chat('Add.', '3'));
  t.same(parse({ instruction: 'Add.', context: '1, 2', response: '3' }), chat('Add.\n\n1, 2', '3'));
  t.same(
    parse({ instruction: 'More?', output: 'No.', system: 'Be brief.', history: [['Why?', 'Because.']] }),
    {
      messages: [
        { role: 'system', content: 'Be brief.' },
        ...chat('Why?', 'Because.', 'More?', 'No.').messages,
      ],
      tools: null,
    },
  );
});

t.test('questions with answers are chats', async (t) => {
  t.same(parse({ question: 'Why?', answer: 'Because.' }), chat('Why?', 'Because.'));
  t.same(parse({ question: 'Why?', context: null, response: 'So.' }), chat('Why?', 'So.'));
});

t.test("ShareGPT's conversations are chats", async (t) => {
  const turns = [
    { from: 'human', value: 'Why?' },
    { from: 'gpt', value: 'Because.', weight: 0 },
    { from: 'human', value: 'More?' },
    { from: 'gpt', value: 'No.' },
  ];
  const [first, second, ...rest] = chat('Why?', 'Because.', 'More?', 'No.').messages;
  t.same(parse({ conversations: turns, system: 'Be brief.', tools: [{ name: 'f' }] }), {
    messages: [{ role: 'system', content: 'Be brief.' }, first, { ...second, weight: 0 }, ...rest],
    tools: [{ name: 'f' }],
  });
  t.same(parse({ conversations: chat('a', 'b').messages }), chat('a', 'b'));
});

t.test('forms with a name of their own come first', async (t) => {
  t.same(parse({ instruction: 'a', output: 'b', text: 'a b' }), { text: 'a b' });
  t.same(parse({ question: 'a', messages: chat('c', 'd').messages }), chat('c', 'd'));
});

const REFUSED: [what: string, line: object, message: RegExp][] = [
  [
    'no output',
    { instruction: 'a' },
    /^a line with "instruction" must have exactly one of "output" or "response"/,
  ],
  ['two outputs', { instruction: 'a', output: 'b', response: 'c' }, /must have exactly one of/],
  ['an empty output', { instruction: 'a', output: '' }, /^"output" is empty; leave the line out/],
  ['nothing asked', { question: '', answer: 'b' }, /^"question" is empty/],
  ['an output that is a number', { instruction: 'a', output: 3 }, /^"output" must be a string/],
  [
    'a wrong history',
    { instruction: 'a', output: 'b', history: ['c'] },
    /^"history" must be a list of pairs/,
  ],
  ['no list', { conversations: {} }, /^"conversations" must be a list/],
  [
    'an unknown speaker',
    { conversations: [{ from: 'bing', value: 'a' }] },
    /^"from" of turn 0 of "conversations" must be one of human, user, gpt/,
  ],
  [
    'a speaker that objects have',
    { conversations: [{ from: 'constructor', value: 'a' }] },
    /^"from" of turn 0 of "conversations" must be one of human, user, gpt/,
  ],
  [
    'no value',
    { conversations: [{ from: 'gpt' }] },
    /^"value" of turn 0 of "conversations" must be a string/,
  ],
  ['no answer', { conversations: [{ from: 'human', value: 'a' }] }, /^no message has the role "assistant"/],
  ['two forms', { instruction: 'a', conversations: [] }, /this one has "instruction" and "conversations"/],
  ['no form', { title: 'a', '2': 'b' }, /this one has only "2" and "title"; write/],
  [
    'no form, and many fields',
    Object.fromEntries([...'abcdefghi'].map((name) => [name, 1])),
    /this one has only others, such as "a", "b", .*"g" and "h"; write/,
  ],
];
for (const [what, line, message] of REFUSED)
  t.test(`refused: ${what}`, async (t) => {
    t.throws(() => parse(line), { constructor: BadLine, message });
  });
