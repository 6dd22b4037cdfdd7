import t from 'tap';
import { jsonExcess } from './json-limits.js';

const LIMITS = { depth: 10, values: 1000 };
const excess = (text: string) => jsonExcess(Buffer.from(text), LIMITS);
const nested = (levels: number) => `${'{"a":['.repeat(levels / 2)}1${']}'.repeat(levels / 2)}`;

t.test('depth', async (t) => {
  t.equal(excess(nested(10)), null);
  t.match(excess(nested(12)), /deeper than 10 levels/);
  t.match(excess('['.repeat(500_000)), /deeper than 10 levels/);
  t.equal(excess(`[${'[],{},'.repeat(100)}1]`), null, 'side by side');
});

t.test('values', async (t) => {
  t.equal(excess(JSON.stringify(Array.from({ length: 990 }, () => 1))), null);
  t.match(excess(JSON.stringify(Array.from({ length: 1001 }, () => 1))), /more than 1000 values/);
  t.match(excess('[],'.repeat(600)), /more than 1000 values/);
  const named = Object.fromEntries(Array.from({ length: 990 }, (_, i) => [`name ${i}`, i]));
  t.equal(excess(JSON.stringify(named)), null, 'names do not count');
});

t.test('string contents do not count', async (t) => {
  for (const string of [
    '['.repeat(500),
    ','.repeat(5000),
    `\\"${'{'.repeat(500)}`,
    `\\\\\\"${'['.repeat(500)}`,
  ]) {
    const text = `{"${string}":"${string}"}`;
    JSON.parse(text);
    t.equal(excess(text), null, string.slice(0, 10));
  }
  t.match(excess(`{"a\\\\":${'['.repeat(500)}`), /deeper/, 'the string ends before');
  t.equal(excess(`"${'['.repeat(500)}`), null, 'an unterminated string is left to the parser');
  t.equal(excess('"\\'), null);
});
