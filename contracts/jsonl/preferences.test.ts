import fc from 'fast-check';
import t from 'tap';
import { BadLine } from './fields.js';
import { parseLine } from './line.js';

const USER = { role: 'user', content: 'Why?' };
const GOOD = { role: 'assistant', content: 'Because.' };
const BAD = { role: 'assistant', content: 'No.' };
const CALL = { role: 'assistant', content: null, tool_calls: [{ function: { name: 'f' } }] };
const TOOLS = [{ type: 'function' }];

const parse = (line: unknown) => parseLine(JSON.stringify(line));

t.test('pairs of OpenAI, of TRL with and without a prompt, and labelled completions', async (t) => {
  const pair = { prompt: [USER], chosen: [GOOD], rejected: [BAD], tools: null };
  t.same(
    parse({
      input: { messages: [USER], tools: TOOLS, parallel_tool_calls: true },
      preferred_output: [GOOD],
      non_preferred_output: [CALL, BAD],
    }),
    { ...pair, rejected: [CALL, BAD], tools: TOOLS, parallel_tool_calls: true },
  );
  t.same(parse({ prompt: [USER], chosen: [GOOD], rejected: [BAD], score: 3 }), pair);
  t.same(parse({ prompt: 'a', chosen: 'b', rejected: '' }), {
    prompt: 'a',
    chosen: 'b',
    rejected: '',
    tools: null,
  });
  const implicit = {
    chosen: [USER, CALL, USER, GOOD],
    rejected: [USER, CALL, USER, BAD, USER, GOOD],
    tools: TOOLS,
  };
  t.same(parse(implicit), {
    prompt: [USER, CALL, USER],
    chosen: [GOOD],
    rejected: [BAD, USER, GOOD],
    tools: TOOLS,
  });
  // The order of fields is none of a message.
  const swapped = { chosen: [USER, GOOD], rejected: [{ content: 'Why?', role: 'user' }, BAD] };
  t.same(parse(swapped), pair);
  const labelled = { prompt: [USER], completion: [BAD], label: false, tools: null };
  t.same(parse({ prompt: [USER], completion: [BAD], label: false }), labelled);
  t.match(parse({ prompt: '', completion: 'b', label: true }), { prompt: '', completion: 'b', label: true });
});

const REFUSED: [what: string, line: object, message: RegExp][] = [
  ['messages as well', { chosen: 'a', messages: [] }, /exactly one .* has "messages" and "chosen"; write/],
  ['two kinds', { chosen: 'a', completion: 'b' }, /has "chosen" and "completion"/],
  ['only one completion', { prompt: 'a', rejected: 'b' }, /this one has only "prompt" and "rejected"/],
  [
    'no second completion',
    { prompt: 'a', chosen: 'b' },
    /^"rejected" must be a string, because "prompt" is one/,
  ],
  ['a text after messages', { prompt: [USER], chosen: 'b', rejected: 'c' }, /^"chosen" must be a list/],
  ['messages after a text', { prompt: 'a', chosen: [GOOD], rejected: [BAD] }, /^"chosen" must be a string/],
  [
    'texts without a prompt',
    { chosen: 'ab', rejected: 'ac' },
    /^"prompt" is missing; only lists of messages/,
  ],
  ['nothing in common', { chosen: [GOOD], rejected: [BAD] }, /begin with different messages/],
  [
    'nothing different',
    { chosen: [USER, GOOD], rejected: [USER, GOOD] },
    /^the prompt ends with .*"assistant"/,
  ],
  [
    'an end in common',
    { chosen: [USER], rejected: [USER, GOOD] },
    /^"chosen" must begin with .* it has none/,
  ],
  [
    'a prompt that is answered',
    { prompt: [USER, GOOD], chosen: [GOOD], rejected: [BAD] },
    /^the prompt ends with/,
  ],
  [
    'a prompt without messages',
    { prompt: [], chosen: [GOOD], rejected: [BAD] },
    /^the prompt has no messages/,
  ],
  [
    'a prompt that is a number',
    { prompt: 3, chosen: 'a', rejected: 'b' },
    /^"prompt" must be a string or a list/,
  ],
  [
    'a completion of the user',
    { prompt: [USER], chosen: [USER, GOOD], rejected: [BAD] },
    /^"chosen" must begin .* "user"/,
  ],
  [
    'a bad message',
    { prompt: [USER], chosen: [GOOD], rejected: [{}] },
    /^"role" of message 0 of "rejected" must be a string/,
  ],
  [
    'bad tools',
    { prompt: [USER], chosen: [GOOD], rejected: [BAD], tools: 'f' },
    /^"tools" must be a list of objects/,
  ],
  ['no input', { preferred_output: [GOOD], non_preferred_output: [BAD] }, /^"input" must be an object/],
  [
    'an input without messages',
    { input: {}, preferred_output: [GOOD], non_preferred_output: [BAD] },
    /^"messages" of "input" must be a list/,
  ],
  [
    'no output',
    { input: { messages: [USER] }, preferred_output: [GOOD] },
    /^"non_preferred_output" must be a list/,
  ],
  ['a completion without a prompt', { completion: 'a', label: true }, /^"prompt" is missing/],
  ['a label that is a number', { prompt: 'a', completion: 'b', label: 1 }, /^"label" must be true or false/],
  [
    'a completion that is null',
    { prompt: 'a', completion: null, label: true },
    /^"completion" must be a string/,
  ],
];
for (const [what, line, message] of REFUSED)
  t.test(`refused: ${what}`, async (t) => {
    t.throws(() => parse(line), { constructor: BadLine, message });
  });

t.test('any line is read or refused as a bad line', async (t) => {
  const role = fc.constantFrom('user', 'assistant', 'tool', 3);
  const message = fc.oneof(
    fc.record({ role, content: fc.oneof(fc.string(), fc.constant(null)) }),
    fc.jsonValue(),
  );
  const content = fc.oneof(fc.array(message, { maxLength: 3 }), fc.string(), fc.jsonValue());
  const names = [
    'prompt',
    'chosen',
    'rejected',
    'completion',
    'preferred_output',
    'non_preferred_output',
    'tools',
    'label',
  ];
  const fields = Object.fromEntries(names.map((name) => [name, content]));
  const input = fc.oneof(
    fc.record({ messages: content, tools: content }, { requiredKeys: [] }),
    fc.jsonValue(),
  );
  fc.assert(
    fc.property(fc.record({ ...fields, input }, { requiredKeys: [] }), (line) => {
      try {
        const read = parse(line);
        t.ok('chosen' in read || 'prompt' in read || 'messages' in read);
      } catch (error) {
        t.ok(error instanceof BadLine && error.message.length > 10, String(error));
      }
    }),
    { numRuns: 2000 },
  );
});
