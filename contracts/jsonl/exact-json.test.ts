import fc from 'fast-check';
import t from 'tap';
import { hasUnpairedSurrogate, NumberText, nameOf, parseExactly, stringifyExactly } from './exact-json.js';

t.test('numbers and the order of names stay as they are written', async (t) => {
  const json =
    '{\n  "b": 9007199254740993,\n  "2": 1e24,\n  "1": [\n    1.0,\n    -0,\n    1e400,\n    7,\n    0.5\n  ],\n  "a": "3"\n}';
  const value = parseExactly(json) as Record<string, unknown>;
  t.equal(stringifyExactly(value), json);
  t.same(Object.keys(value).map(nameOf), ['b', '2', '1', 'a']);
  t.same(value.b, new NumberText('9007199254740993'));
  t.equal(value.a, '3');
});

t.test('texts are no numbers and no names', async (t) => {
  const json = String.raw`{"a": "\"2\": 1.0", "b\\": "\\", "c": ["2", "1.0", "\\\"1.0"], "d": 1.0}`;
  const { d, ...rest } = parseExactly(json) as Record<string, unknown>;
  t.same(d, new NumberText('1.0'));
  const { d: _, ...expected } = JSON.parse(json);
  t.strictSame(rest, expected);
});

t.test('everything else is as JSON.parse has it', async (t) => {
  const values = fc.jsonValue({ depthSize: 'large', stringUnit: 'binary' });
  fc.assert(
    fc.property(values, fc.constantFrom(undefined, 1), (value, indent) => {
      const json = JSON.stringify(value, null, indent);
      t.equal(
        JSON.stringify(JSON.parse(stringifyExactly(parseExactly(json)))),
        JSON.stringify(JSON.parse(json)),
      );
    }),
  );
  for (const json of ['{', '{"a": 01}', '[1.]', '"', '', '[-]'])
    t.throws(() => parseExactly(json), SyntaxError, json);
});

t.test('surrogates without their other half are found', async (t) => {
  const found = (json: string) => hasUnpairedSurrogate(json, JSON.parse(json));
  for (const json of [String.raw`"a\ud800b"`, String.raw`{"\uDFFF": 1}`, String.raw`["\\\ud800"]`])
    t.ok(found(json), json);
  for (const json of [String.raw`"\ud83d\ude00"`, String.raw`"\\ud800"`, '"😀"']) t.notOk(found(json), json);
});
