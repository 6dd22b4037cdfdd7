import t from 'tap';
import { BadLine } from './fields.js';
import { parseLine } from './line.js';

const USER = { role: 'user', content: 'Why?' };
const ANSWER = { role: 'assistant', content: 'Because.' };
const CALL = { role: 'assistant', content: null, tool_calls: [{ function: { name: 'f' } }] };
const RESULT = { role: 'tool', content: '1' };
const TOOLS = [{ type: 'function' }];

const parse = (line: object) => parseLine(JSON.stringify(line));

t.test('a text of which the completion is learned', async (t) => {
  t.same(parse({ prompt: 'a', completion: 'b', id: 3 }), { prompt: 'a', completion: 'b', tools: null });
  t.same(parse({ prompt: '', completion: 'b' }), { prompt: '', completion: 'b', tools: null });
});

t.test('a chat of which the turns of the assistant in the completion are learned', async (t) => {
  t.same(parse({ prompt: [USER], completion: [ANSWER] }), { messages: [USER, ANSWER], tools: null });
  const line = { prompt: [USER, CALL, RESULT], completion: [CALL, RESULT, ANSWER], tools: TOOLS };
  t.same(parse({ ...line, parallel_tool_calls: false }), {
    messages: [USER, { ...CALL, weight: 0 }, RESULT, CALL, RESULT, ANSWER],
    tools: TOOLS,
    parallel_tool_calls: false,
  });
  const silent = { ...ANSWER, weight: 0 };
  t.same(
    parse({ prompt: [{ ...ANSWER, weight: 1 }, USER], completion: [silent, USER, ANSWER] }),
    { messages: [silent, USER, silent, USER, ANSWER], tools: null },
    'weights of a completion have their effect, those of a prompt have none',
  );
});

const REFUSED: [what: string, line: object, message: RegExp][] = [
  ['no prompt', { completion: 'b' }, /^"prompt" is missing/],
  ['a prompt that is null', { prompt: null, completion: 'b' }, /^"prompt" must be a string or a list/],
  ['nothing to learn', { prompt: 'a', completion: '' }, /^"completion" is empty; leave the line out/],
  ['a completion of another kind', { prompt: 'a', completion: [ANSWER] }, /^"completion" must be a string/],
  ['a text after messages', { prompt: [USER], completion: 'b' }, /^"completion" must be a list/],
  ['no answer', { prompt: [USER], completion: [] }, /^"completion" must begin with .* it has none/],
  ['another role', { prompt: [USER], completion: [USER] }, /^"completion" must begin with .* "user"/],
  ['an answered prompt', { prompt: [ANSWER], completion: [ANSWER] }, /^the prompt ends with/],
  [
    'no turn that is learned',
    { prompt: [USER], completion: [{ ...ANSWER, weight: 0 }] },
    /^every message of the role "assistant" has "weight": 0/,
  ],
  [
    'a bad message',
    { prompt: [USER], completion: [ANSWER, {}] },
    /^"role" of message 1 of "completion" must be a string/,
  ],
  ['bad tools', { prompt: 'a', completion: 'b', tools: 'f' }, /^"tools" must be a list of objects/],
  [
    'a label that is null',
    { prompt: 'a', completion: 'b', label: null },
    /^"label" must be true or false.*leave it out to learn/,
  ],
];
for (const [what, line, message] of REFUSED)
  t.test(`refused: ${what}`, async (t) => {
    t.throws(() => parse(line), { constructor: BadLine, message });
  });
