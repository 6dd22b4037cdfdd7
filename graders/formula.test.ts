import t from 'tap';
import { parseFormula } from './formula.js';

const SCORES = { a: 0.5, b: 3, min_length: 2 };
const NAMES = Object.keys(SCORES);
const computed = (text: string) => parseFormula(text, NAMES)(SCORES);

t.test('values', (t) => {
  const expected: [string, number][] = [
    ['a', 0.5],
    [' a + b*2 ', 6.5],
    ['b - a - a', 2],
    ['b / min_length / 3', 0.5],
    ['2 ^ b ^ 2', 512],
    ['-2 ^ 2', -4],
    ['(-2) ^ 2', 4],
    ['2 ^ -1', 0.5],
    ['--b', 3],
    ['-(a + b) * 2', -7],
    ['min(a, b, 0.25) + max(a, b)', 3.25],
    ['abs(-b) + floor(2.5) + ceil(2.5)', 8],
    ['sqrt(4) + exp(0) + log(1)', 3],
    ['1e-1 + .5 + 2.', 2.6],
  ];
  for (const [text, value] of expected) t.equal(computed(text), value, text);
  t.equal(computed('a / 0'), Number.POSITIVE_INFINITY);
  t.end();
});

t.test('formulas that cannot be read say where', (t) => {
  const refused: [string, RegExp][] = [
    ['', /a number, a name or \( is expected at 1, before the end/],
    ['a +', /expected at 4, before the end/],
    ['a b', /an operator is expected at 3, before b/],
    ['(a', /\) is expected at 3/],
    ['min(a', /\) is expected at 6/],
    ['a $ b', /unknown character at 2/],
    ['c', /no grader is named c; there are a, b, min_length/],
    ['constructor', /no grader is named constructor/],
    ['pow(a, 2)', /no function pow at 1/],
    ['abs(a, b)', /abs at 1 has one argument/],
    ['()', /expected at 2/],
    [`${'('.repeat(1000)}a`, /more than 100 nested parts/],
    [`${'-'.repeat(1000)}a`, /more than 100 nested parts/],
    [`a${'^a'.repeat(1000)}`, /more than 100 nested parts/],
  ];
  for (const [text, message] of refused) {
    t.throws(() => computed(text), { message }, text.slice(0, 20));
  }
  t.end();
});

t.test('a long formula is read and computed', (t) => {
  t.equal(computed(`0${'+1'.repeat(2000)}`), 2000);
  t.end();
});
