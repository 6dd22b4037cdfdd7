import t from 'tap';
import { MAX_NESTING, refuseDeepJson, refuseHalfPairs } from './json-body.js';

const refusal = { code: 'malformed_json' };
const nested = (levels: number) => `${'{"a":['.repeat(levels / 2)}1${']}'.repeat(levels / 2)}`;

t.test('what is nested deeper than anything needs is refused', async (t) => {
  t.doesNotThrow(() => refuseDeepJson(nested(MAX_NESTING)));
  t.throws(() => refuseDeepJson(nested(MAX_NESTING + 2)), refusal);
  t.throws(() => refuseDeepJson('['.repeat(500_000)), refusal);
  t.doesNotThrow(() => refuseDeepJson(`[${'[],{},'.repeat(1000)}1]`), 'beside each other');
});

t.test('brackets in strings are text', async (t) => {
  for (const string of ['['.repeat(500), `\\"${'{'.repeat(500)}`, `\\\\\\"${'['.repeat(500)}`]) {
    const text = `{"${string}":"${string}"}`;
    JSON.parse(text);
    t.doesNotThrow(() => refuseDeepJson(text), string.slice(0, 10));
  }
  t.throws(() => refuseDeepJson(`{"a\\\\":${'['.repeat(500)}`), refusal, 'the string ends before');
  t.doesNotThrow(
    () => refuseDeepJson(`"${'['.repeat(500)}`),
    'a string without an end is for the parser to refuse',
  );
});

t.test('half a surrogate pair is no character', async (t) => {
  for (const text of [
    '"\\ud800"',
    '"a\\uDC00b"',
    '{"a":["\\ude00\\ud83d"]}',
    '{"\\ud800":1}',
    '"\\\\\\ud800"',
  ])
    t.throws(() => refuseHalfPairs(text, JSON.parse(text)), refusal, text);
  for (const text of ['"\\ud83d\\ude00"', '"\\\\ud800"', '"\\\\\\\\ud800"', '{"\\uD83D\\uDE00":"\\u00e4"}'])
    t.doesNotThrow(() => refuseHalfPairs(text, JSON.parse(text)), text);
});
