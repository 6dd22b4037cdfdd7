/**
 * Choice of machines for a number of ranks. That they suffice and none is superfluous is tested in
 * properties.test.ts.
 */
import t from 'tap';
import { affordable, chooseMachines, ranksOf, type Supply } from './choose.js';

/** `[name, slots, price, machines]` */
type Row = [string, number, number, number];

const supply = ([name, slots, pricePerHour, machines]: Row): Supply => ({
  type: { name, slots, max: 100, price_per_hour: pricePerHour },
  machines,
});
const chosen = (ranks: number, ...rows: Row[]) => Object.fromEntries(chooseMachines(ranks, rows.map(supply)));

t.test('chooses the cheapest ranks first, in any order of types', async (t) => {
  t.same(chosen(8, ['expensive', 4, 8, 9], ['cheap', 4, 4, 9]), { cheap: 2 });
  t.same(chosen(8, ['cheap', 4, 4, 9], ['expensive', 4, 8, 9]), { cheap: 2 });
  t.same(chosen(8, ['large', 8, 9, 9], ['small', 1, 1, 9]), { small: 8 }, 'per rank, not per machine');
});

t.test('of equal prices the largest machine', async (t) => {
  t.same(chosen(8, ['small', 2, 2, 9], ['large', 8, 8, 9]), { large: 1 });
  t.same(chosen(8, ['large', 8, 8, 9], ['small', 2, 2, 9]), { large: 1 });
});

t.test('the remainder takes one more machine of the type, or a cheaper mix', async (t) => {
  t.same(chosen(9, ['eight', 8, 8, 9], ['one', 1, 2, 9]), { eight: 1, one: 1 });
  t.same(chosen(15, ['eight', 8, 8, 9], ['one', 1, 2, 9]), { eight: 2 });
  t.same(chosen(12, ['eight', 8, 8, 9], ['one', 1, 2, 9]), { eight: 2 }, 'of equal costs the fewer machines');
});

t.test('further types follow when a type is used up', async (t) => {
  t.same(chosen(7, ['a', 4, 4, 1], ['b', 2, 4, 1], ['c', 1, 9, 9]), { a: 1, b: 1, c: 1 });
  t.same(chosen(9, ['a', 4, 4, 1], ['b', 2, 4, 1]), { a: 1, b: 1 }, 'all that exist');
  t.same(chosen(9, ['a', 4, 4, 2], ['b', 2, 9, 0]), { a: 2 });
});

t.test('machines that a larger one makes superfluous are dropped', async (t) => {
  t.same(chosen(5, ['one', 1, 1, 3], ['four', 4, 5, 9]), { one: 1, four: 1 });
  t.same(chosen(6, ['one', 1, 1, 3], ['eight', 8, 9, 9]), { eight: 1 });
  const three: Row[] = [
    ['one', 1, 1, 3],
    ['two', 2, 2.2, 2],
    ['eight', 8, 9.6, 9],
  ];
  t.same(chosen(12, ...three), { one: 2, two: 1, eight: 1 }, 'of several types just the superfluous ones');
});

t.test('no ranks or no supply give no machines', async (t) => {
  t.same(chosen(0, ['a', 4, 4, 9]), {});
  t.same(chosen(-4, ['a', 4, 4, 9]), {});
  t.same(chosen(4), {});
  t.same(chosen(4, ['a', 4, 4, 0]), {});
});

t.test('ranks of machines', async (t) => {
  t.equal(ranksOf([]), 0);
  t.equal(ranksOf([supply(['a', 4, 1, 2]), supply(['b', 1, 1, 3])]), 11);
});

t.test('a budget buys the cheapest ranks first', async (t) => {
  const paid = (perHour: number, ...rows: Row[]) =>
    affordable(rows.map(supply), perHour).map(({ type, machines }) => [type.name, machines]);
  const rows: Row[] = [
    ['expensive', 1, 3, 5],
    ['cheap', 4, 4, 2],
  ];
  t.same(paid(100, ...rows), [
    ['cheap', 2],
    ['expensive', 5],
  ]);
  t.same(paid(11, ...rows), [
    ['cheap', 2],
    ['expensive', 1],
  ]);
  t.same(paid(7, ...rows), [
    ['cheap', 1],
    ['expensive', 1],
  ]);
  t.same(paid(3.9, ...rows), [
    ['cheap', 0],
    ['expensive', 1],
  ]);
  t.same(paid(-5, ...rows), [
    ['cheap', 0],
    ['expensive', 0],
  ]);
  t.same(paid(0, ['free', 1, 0, 5], ['cheap', 4, 4, 2]), [
    ['free', 5],
    ['cheap', 0],
  ]);
  t.same(paid(Number.POSITIVE_INFINITY, ...rows), [
    ['cheap', 2],
    ['expensive', 5],
  ]);
});

t.test('chooses none for zero or negative ranks', async (t) => {
  for (const ranks of [0, -1, -20])
    t.same(chosen(ranks, ['eight', 8, 9, 2], ['one', 1, 2, 8]), {}, `${ranks} ranks`);
});
