import fc from 'fast-check';
import t from 'tap';
import type { CallFormat } from '../../contracts/index.js';
import { joinedCalls } from './answer-reader.js';
import { CallReader } from './call-reader.js';

const QWEN: CallFormat = {
  open: '<tool_call>',
  separator: null,
  close: '</tool_call>',
  name: ['name'],
  arguments: ['arguments'],
};
const LLAMA: CallFormat = { open: '', separator: null, close: '', name: ['name'], arguments: ['parameters'] };
const MISTRAL: CallFormat = { ...QWEN, open: '[', separator: ',', close: ']' };
const NAMED: CallFormat = { open: '', separator: '', close: '', name: null, arguments: [] };
const NAMES = ['get', 'get_weather'];

/** Reads a text in parts, cut at these positions. */
function read(format: CallFormat, text: string, cuts: readonly number[] = []) {
  const reader = new CallReader(format, NAMES, (call) => `id${call}`);
  const positions = [...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length];
  const parts = positions.map((position, at) => reader.push(text.slice(positions[at - 1] ?? 0, position)));
  parts.push(reader.end());
  return {
    text: parts.map((part) => part.text).join(''),
    calls: joinedCalls(parts.flatMap(({ tool_calls }) => tool_calls)).map(
      ({ id, function: { name, arguments: given } }) => [id, name, given],
    ),
    parts,
  };
}

const CASES: [CallFormat, string, string, [string, string][]][] = [
  [
    QWEN,
    'Let me look.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris }"}}\n</tool_call>\n<tool_call>\n{"name": "get", "arguments": {}}\n</tool_call>\n',
    'Let me look.',
    [
      ['get_weather', '{"city": "Paris }"}'],
      ['get', '{}'],
    ],
  ],
  [QWEN, 'no <tool and <tool_call>\nnothing {\n', 'no <tool and <tool_call>\nnothing {\n', []],
  [
    QWEN,
    '<tool_call>{"name": "other", "arguments": {}}</tool_call>',
    '<tool_call>{"name": "other", "arguments": {}}</tool_call>',
    [],
  ],
  [QWEN, '<tool_call>{"name": "get", "arguments": {"a": [1, "', '', [['get', '{"a": [1, "']]],
  [QWEN, '<tool_call>{"arguments": {"a": "\\"}"}, "name": "get"}', '', [['get', '{"a": "\\"}"}']]],
  [
    QWEN,
    '<tool_call>{"name": "get", "arguments": "{\\"a\\": 1}"}</tool_call> then',
    ' then',
    [['get', '{"a": 1}']],
  ],
  [LLAMA, '\n{"name": "get", "parameters": {"a": {"b": null}}}', '', [['get', '{"a": {"b": null}}']]],
  [LLAMA, '{"name": "someone", "age": 4}', '{"name": "someone", "age": 4}', []],
  [
    LLAMA,
    'The answer is {"name": "get", "parameters": {}}',
    'The answer is {"name": "get", "parameters": {}}',
    [],
  ],
  [
    MISTRAL,
    ' [{"name": "get", "arguments": {"a": 1}}, {"name": "get_weather", "arguments": {}, "id": "x"}]',
    '',
    [
      ['get', '{"a": 1}'],
      ['get_weather', '{}'],
    ],
  ],
  [MISTRAL, 'a list [1, 2] and [', 'a list [1, 2] and [', []],
  [
    NAMED,
    'get_weather{"city": "x"}getabcdefghi{"a": 1}',
    '',
    [
      ['get_weather', '{"city": "x"}'],
      ['get', '{"a": 1}'],
    ],
  ],
  [NAMED, 'getting {it}', 'getting {it}', []],
  [NAMED, 'gossip', 'gossip', []],
];

t.test('a text is divided into text and calls', async (t) => {
  for (const [format, text, rest, calls] of CASES) {
    const found = read(format, text);
    t.equal(found.text, rest, text);
    t.same(
      found.calls,
      calls.map(([name, given], at) => [`id${at}`, name, given]),
      text,
    );
  }
});

t.test('text and calls do not depend on the parts in which a text comes', async (t) => {
  for (const [format, text] of CASES) {
    const whole = read(format, text);
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 60 }), (cuts) => {
        const { text: found, calls } = read(format, text, cuts);
        t.same([found, calls], [whole.text, whole.calls]);
      }),
      { numRuns: 30 },
    );
  }
});

t.test('arguments are read as they grow, and their call is announced first', async (t) => {
  const text = '<tool_call>\n{"name": "get", "arguments": {"a": "bcd"}}';
  const { parts } = read(
    QWEN,
    text,
    [...text].map((_, at) => at),
  );
  const deltas = parts.flatMap(({ tool_calls }) => tool_calls);
  t.same(deltas[0], { index: 0, id: 'id0', type: 'function', function: { name: 'get', arguments: '' } });
  t.same(
    deltas.slice(1).map(({ function: called }) => called),
    [...'{"a": "bcd"}'].map((character) => ({ arguments: character })),
  );
});

t.test('a long call is read once', async (t) => {
  const reader = new CallReader(QWEN, NAMES, String);
  reader.push('<tool_call>{"name": "get", "arguments": {"a": "');
  let length = 0;
  for (let part = 0; part < 20_000; part++) {
    const { tool_calls } = reader.push('x'.repeat(50));
    length += tool_calls[0]?.function.arguments.length ?? 0;
  }
  t.equal(length, 1_000_000);
});
