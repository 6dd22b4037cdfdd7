import t, { type Test } from 'tap';
import { BadLine } from './fields.js';
import { parseLine } from './line.js';

const USER = { role: 'user', content: 'q' };
const ANSWER = { role: 'assistant', content: 'a' };
const CALL = { name: 'f', arguments: '{"x": 1}' };

const parse = (line: unknown) => parseLine(JSON.stringify(line));
const refused = (t: Test, line: unknown, message: RegExp) =>
  t.throws(() => parse(line), { constructor: BadLine, message }, JSON.stringify(line));

t.test("OpenAI's former names of calls, results and tools are read as the current ones", async (t) => {
  const tool_calls = [{ type: 'function', function: CALL }];
  const line = {
    messages: [
      USER,
      { role: 'assistant', function_call: CALL },
      { role: 'function', name: 'f', content: '1' },
      { ...ANSWER, function_call: null },
    ],
    functions: [{ name: 'f' }],
  };
  t.same(parse(line), {
    messages: [USER, { role: 'assistant', tool_calls }, { role: 'tool', name: 'f', content: '1' }, ANSWER],
    tools: [{ type: 'function', function: { name: 'f' } }],
  });
  const tools = [{ type: 'function', function: { name: 'f' } }];
  const functions = [{ name: 'f' }];
  t.match(parse({ prompt: [USER], chosen: [ANSWER], rejected: [ANSWER], functions }), { tools });
  t.match(parse({ prompt: [USER], completion: [ANSWER], label: true, functions }), { tools });
  t.match(
    parse({
      input: { messages: [USER], functions },
      preferred_output: [ANSWER],
      non_preferred_output: [ANSWER],
    }),
    { tools },
  );
  const both = { ...ANSWER, function_call: CALL, tool_calls };
  refused(t, { messages: [both] }, /^message 0 must have "tool_calls" or "function_call", not both/);
  refused(
    t,
    { messages: [{ ...ANSWER, function_call: 'f' }] },
    /^"function_call" of message 0 must be an object/,
  );
  refused(t, { messages: [ANSWER], tools, functions }, /^write "tools" or "functions", not both/);
  refused(t, { messages: [ANSWER], functions: ['f'] }, /^"functions" must be a list of objects/);
});

t.test('a weight says whether a turn of the assistant is trained on', async (t) => {
  const weighted = (weight: unknown, role = 'assistant') => ({
    messages: [{ role, content: 'b', weight }, ANSWER],
  });
  for (const weight of [0, 1]) t.match(parse(weighted(weight)), { messages: [{ weight }, ANSWER] });
  t.match(parseLine('{"messages": [{"role": "assistant", "content": "b", "weight": 1.0}]}'), {
    messages: [{ weight: 1 }],
  });
  t.same(parse(weighted(null)), { messages: [{ role: 'assistant', content: 'b' }, ANSWER], tools: null });
  t.match(parse(weighted(0, 'user')), { messages: [{ weight: 0 }, ANSWER] });
  for (const weight of [0.5, 2, '1', true, []])
    refused(t, weighted(weight), /^"weight" of message 0 must be 0 or 1/);
  refused(t, weighted(1, 'user'), /^message 0 has "weight": 1 and the role "user", .*leave "weight" out/);
  refused(
    t,
    { messages: [USER, { ...ANSWER, weight: 0 }] },
    /^every message of the role "assistant" has "weight": 0, .*nothing to train on/,
  );
  const bad = { ...ANSWER, weight: 0 };
  refused(
    t,
    { prompt: [USER], chosen: [ANSWER], rejected: [bad] },
    /^a message of "rejected" has "weight": 0/,
  );
  t.doesNotThrow(
    () => parse({ prompt: [bad, USER], chosen: [ANSWER], rejected: [ANSWER] }),
    'a prompt is not trained on',
  );
});

t.test('a line with an unpaired surrogate is refused', async (t) => {
  for (const line of [
    String.raw`{"text": "a\ud800b"}`,
    String.raw`{"messages": [{"role": "assistant", "content": "\udc00"}]}`,
  ])
    t.throws(() => parseLine(line), { message: /^it has an unpaired surrogate, such as \\ud800 alone/ });
  t.same(parseLine(String.raw`{"text": "\ud83d\ude00"}`), { text: '😀' });
});

t.test('numbers stand for no text and no object', async (t) => {
  for (const line of ['{"text": 1.0}', '{"messages": [{"role": "assistant", "content": 1.0}]}'])
    t.throws(() => parseLine(line), { constructor: BadLine, message: /must be a string|both strings/ });
  t.throws(() => parseLine('{"messages": [{"role": "assistant", "content": "a"}], "tools": [1.0]}'), {
    message: /^"tools" must be a list of objects/,
  });
  const pair = (one: string, other: string) =>
    parseLine(
      `{"chosen": [{"role": "user", "content": "a", "at": ${one}}, {"role": "assistant", "content": "b"}], ` +
        `"rejected": [{"role": "user", "content": "a", "at": ${other}}, {"role": "assistant", "content": "c"}]}`,
    );
  t.match(pair('1.0', '1.0'), { prompt: [{ content: 'a' }] });
  t.throws(() => pair('9007199254740993', '9007199254740992'), { message: /begin with different messages/ });
});
