import fc from 'fast-check';
import t from 'tap';
import { collect } from '../../../formats/testing/byte-source.js';
import { linesOfArray } from './json-array.js';

async function linesOf(text: string, cuts: readonly number[] = []) {
  const body = Buffer.from(text);
  const borders = [0, ...cuts.map((cut) => cut % (body.length + 1)).sort((a, b) => a - b), body.length];
  const pieces = async function* () {
    for (let at = 1; at < borders.length; at++) yield body.subarray(borders[at - 1], borders[at]);
  };
  return (await collect(linesOfArray(pieces()))).toString().trim().split('\n');
}

t.test('items keep their text, wherever the pieces end', async (t) => {
  const values = fc.array(fc.object({ withNullPrototype: false, maxDepth: 3 }), {
    minLength: 1,
    maxLength: 6,
  });
  await fc.assert(
    fc.asyncProperty(values, fc.constantFrom(0, 2), fc.array(fc.nat()), async (items, indent, cuts) => {
      const lines = await linesOf(JSON.stringify(items, null, indent), cuts);
      t.same(
        lines.map((line) => JSON.parse(line)),
        JSON.parse(JSON.stringify(items)),
      );
    }),
  );
  t.same(
    await linesOf('[\n {"a": 9007199254740993, "b": "[,\\"]\\\\"},\r\n {"c": 1.0}\n]\n'),
    ['{"a": 9007199254740993, "b": "[,\\"]\\\\"}', '{"c": 1.0}'].map((line, at) =>
      at === 0 ? line : `   ${line}`,
    ),
  );
  t.same(await linesOf(' [ ] '), ['']);
});

const REFUSED: [string, RegExp][] = [
  ['[{"a": 1}, {"b": 2}', /^item 2: the array does not end/],
  ['[{"a": 1}] {"b": 2}', /^item 1: after it the array ends, and something follows/],
  ['[{"a": 1}, {"b": "c\nd"}]', /^item 2: a string has a line end/],
  ['[{"a": 1},, {"b": 2}]', /^item 2: it is empty/],
  ['[{"a": 1},]', /^item 2: it is empty/],
  ['[,]', /^item 1: it is empty/],
  ['[{"a": 1}}', /^item 1: the array ends with }/],
];
for (const [text, message] of REFUSED)
  t.test(`refused: ${JSON.stringify(text)}`, (t) =>
    t.rejects(linesOf(text), { code: 'dataset_line_invalid', message }),
  );
