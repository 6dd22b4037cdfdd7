import t from 'tap';
import { ago, clock, compact, cost, currency, dateTime, loss, lossOf, short } from './format.js';

t.test('costs have the currency of the server, if it has one', async (t) => {
  t.equal(cost(12.345), '12.35');
  currency.value = 'EUR';
  t.teardown(() => (currency.value = null));
  t.equal(cost(0.5), '0.50 EUR');
});

t.test('numbers', async (t) => {
  t.same([compact(65_432), compact(null), loss(1.23456), loss(null)], ['65.4K', '–', '1.2346', '–']);
  t.same(
    [
      { step: 3, loss: null },
      { step: 0, loss: null },
      { step: 3, loss: 2 },
    ].map(lossOf),
    ['NaN', '–', '2.0000'],
  );
});

t.test('times', async (t) => {
  const now = Date.parse('2026-11-27T12:00:00Z');
  const before = (seconds: number) => ago(new Date(now - 1000 * seconds).toISOString(), now);
  t.same([-5, 59, 60, 3599, 3600, 86_399].map(before), [
    'just now',
    'just now',
    '1 min ago',
    '59 min ago',
    '1 h ago',
    '23 h ago',
  ]);
  t.match(before(86_400), /\d{4}/);
  const today = new Date('2026-11-27T12:34:56');
  t.match(clock(today.toISOString(), today.getTime()), /^12:34:56$/);
  t.match(clock(today.toISOString(), today.getTime() + 86_400_000), /2026.*12:34:56$/);
  t.match(dateTime('2026-11-27T12:34:56Z'), /2026.*:34:56$/);
});

t.test('values and names of documents', async (t) => {
  t.same([undefined, null, 0, false, 'a', [1, 2], { a: 1 }].map(short), [
    '–',
    '–',
    '0',
    'false',
    'a',
    '[1,2]',
    '{"a":1}',
  ]);
});
