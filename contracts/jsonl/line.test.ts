import t, { type Test } from 'tap';
import { NumberText } from './exact-json.js';
import { BadLine } from './fields.js';
import { isPrompt, type JsonlChat, parseLine } from './line.js';

const USER = { role: 'user', content: 'q' };
const ANSWER = { role: 'assistant', content: 'a' };
const CALL = { name: 'f', arguments: '{"x": 1}' };
/** As templates read it. */
const READ_CALL = { name: 'f', arguments: { x: 1 } };

const parse = (line: unknown) => parseLine(JSON.stringify(line));
const refused = (t: Test, line: unknown, message: RegExp) =>
  t.throws(() => parse(line), { constructor: BadLine, message }, JSON.stringify(line));

t.test("OpenAI's former names of calls, results and tools are read as the current ones", async (t) => {
  const toolCalls = [{ type: 'function', function: CALL }];
  const readCalls = [{ type: 'function', function: READ_CALL }];
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
    messages: [
      USER,
      { role: 'assistant', tool_calls: readCalls },
      { role: 'tool', name: 'f', content: '1' },
      ANSWER,
    ],
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
  const both = { ...ANSWER, function_call: CALL, tool_calls: toolCalls };
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
  for (const weight of [0.5, 2, '1', true, []])
    refused(t, weighted(weight), /^"weight" of message 0 must be 0 or 1/);
  for (const weight of [0, 1])
    refused(
      t,
      weighted(weight, 'user'),
      /^message 0 has a "weight" and the role "user", .*leave "weight" out/,
    );
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
    t.throws(() => parseLine(line), { constructor: BadLine, message: /must be a string/ });
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

t.test('content is a text, a list of text parts, or absent beside calls', async (t) => {
  const contentOf = (message: object) =>
    (parse({ messages: [message, ANSWER] }) as JsonlChat).messages[0]?.content;
  const text = (text: unknown) => ({ type: 'text', text });
  t.equal(contentOf({ ...USER, content: [text('a'), text(' b')] }), 'a b');
  t.equal(contentOf({ ...USER, content: [] }), '');
  t.equal(contentOf({ role: 'assistant', content: null, tool_calls: [{ function: CALL }] }), null);
  t.equal(contentOf({ role: 'assistant', tool_calls: [{ function: CALL }] }), undefined);
  const bad = (content: unknown, message: RegExp) =>
    refused(t, { messages: [USER, { ...ANSWER, content }] }, message);
  bad(null, /^"content" of message 1 must be a string or a list of parts/);
  bad({}, /^"content" of message 1 must be a string or a list of parts/);
  bad(
    [text('a'), { type: 'image_url', image_url: {} }],
    /^part 1 of "content" of message 1 has the type "image_url", .*leave it out/,
  );
  bad([{ text: 'a' }], /^part 0 of "content" of message 1 has the type undefined/);
  bad([text(1)], /^"text" of part 0 of "content" of message 1 must be a string/);
  bad(['a'], /^part 0 of "content" of message 1 must be an object/);
  refused(t, { messages: [{ content: 'a' }] }, /^"role" of message 0 must be a string/);
  refused(t, { messages: ['a'] }, /^message 0 must be an object/);
});

t.test('templates get the arguments of calls as objects', async (t) => {
  const argumentsOf = (
    args: unknown,
    call = (called: object): object => ({ id: 'c', type: 'function', function: called }),
  ) => {
    const messages = [USER, { role: 'assistant', tool_calls: [call({ name: 'f', arguments: args })] }];
    return (parse({ messages }) as JsonlChat).messages[1]?.tool_calls?.[0];
  };
  t.same(argumentsOf('{"x": [1, {"y": null}]}'), {
    id: 'c',
    type: 'function',
    function: { name: 'f', arguments: { x: [1, { y: null }] } },
  });
  t.same(argumentsOf({ x: 1 }), { id: 'c', type: 'function', function: READ_CALL });
  t.same(
    argumentsOf('{"x": 1}', (called) => called),
    READ_CALL,
    'a call without "function"',
  );
  t.match(argumentsOf('{"x": 9007199254740993, "y": 1.0}'), {
    function: { arguments: { x: new NumberText('9007199254740993'), y: new NumberText('1.0') } },
  });
  const bad = (args: unknown, message: RegExp) =>
    refused(
      t,
      { messages: [{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: args } }] }] },
      message,
    );
  bad(
    'Paris',
    /^"arguments" of function of tool_calls\[0\] of message 0 must be a JSON object, or its text; this text is no JSON \(/,
  );
  bad('[1]', /must be a JSON object, or its text; this text is JSON, but not an object$/);
  bad('{"a": 1, "a": 2}', /must be a JSON object, or its text: it has "a" twice/);
  bad(String.raw`{"a": "\ud800"}`, /must be a JSON object, or its text; it has an unpaired surrogate/);
  bad('{"a": NaN}', /this text is no JSON/);
  for (const args of ['', 1, null, []]) bad(args, /must be a JSON object, or its text/);
  refused(
    t,
    { messages: [{ role: 'assistant', function_call: { name: 'f', arguments: '1' } }] },
    /must be a JSON object, or its text/,
  );
});

t.test('whether tools are called in parallel is a field of the line', async (t) => {
  const line = { messages: [USER, ANSWER], parallel_tool_calls: false };
  t.match(parse(line), { parallel_tool_calls: false });
  t.notOk('parallel_tool_calls' in parse({ ...line, parallel_tool_calls: null }));
  refused(t, { ...line, parallel_tool_calls: 'no' }, /^"parallel_tool_calls" must be true or false/);
  const input = { messages: [USER], parallel_tool_calls: true };
  t.match(parse({ input, preferred_output: [ANSWER], non_preferred_output: [ANSWER] }), {
    parallel_tool_calls: true,
  });
});

t.test('a line that JavaScript would change is refused', async (t) => {
  const bad = (line: string, message: RegExp) =>
    t.throws(() => parseLine(line), { constructor: BadLine, message }, line);
  bad('{"text": "a", "text": "b"}', /^it has "text" twice in one object/);
  bad('{"messages": [{"role": "user", "content": "a", "role": "assistant"}]}', /^it has "role" twice/);
  bad(String.raw`{"messages": [], "x": {"a": 1, "b": {"a": 2}, "\u0061": 3}}`, /^it has "\\u0061" twice/);
  for (const value of ['NaN', 'Infinity', '-Infinity'])
    bad(`{"text": "a", "x": ${value}}`, /^it is not JSON/);
  t.same(parseLine('{"text": "a: \\"text\\": ", "x": {"text": [{"text": 1}, {"text": 1.0}]}}'), {
    text: 'a: "text": ',
  });
});

t.test('a prompt alone is a document of its own', async (t) => {
  t.same(parse({ messages: [USER], answer: 'a' }), { prompt: [USER], tools: null });
  t.same(parse({ prompt: 'a', answer: 1 }), { prompt: 'a', tools: null });
  t.same(parse({ prompt: [USER] }), { prompt: [USER], tools: null });
  t.same([parse({ prompt: 'a' }), parse({ prompt: 'a', completion: 'b' })].map(isPrompt), [true, false]);
  refused(t, { prompt: [ANSWER] }, /^the prompt ends with a message of the role "assistant"/);
});
