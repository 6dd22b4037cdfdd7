/** Which machines for how many ranks. That they are enough, and none too many, is in properties.test.ts. */
import t from 'tap';
import { affordable, chooseMachines, ranksOf, type Supply } from './choose.js';

/** `[name, slots, price, machines]` */
type Row = [string, number, number, number];

const supply = ([name, slots, price_per_hour, machines]: Row): Supply => ({
  type: { name, slots, max: 100, price_per_hour },
  machines,
});
const chosen = (ranks: number, ...rows: Row[]) => Object.fromEntries(chooseMachines(ranks, rows.map(supply)));

t.test('the cheapest ranks first, whatever the order of the types', async (t) => {
  t.same(chosen(8, ['dear', 4, 8, 9], ['cheap', 4, 4, 9]), { cheap: 2 });
  t.same(chosen(8, ['cheap', 4, 4, 9], ['dear', 4, 8, 9]), { cheap: 2 });
  t.same(chosen(8, ['large', 8, 9, 9], ['small', 1, 1, 9]), { small: 8 }, 'per rank, not per machine');
});

t.test('of equally cheap ones the largest', async (t) => {
  t.same(chosen(8, ['small', 2, 2, 9], ['large', 8, 8, 9]), { large: 1 });
  t.same(chosen(8, ['large', 8, 8, 9], ['small', 2, 2, 9]), { large: 1 });
});

t.test('the rest is one more of them, or what costs less', async (t) => {
  t.same(chosen(9, ['eight', 8, 8, 9], ['one', 1, 2, 9]), { eight: 1, one: 1 });
  t.same(chosen(15, ['eight', 8, 8, 9], ['one', 1, 2, 9]), { eight: 2 });
  t.same(chosen(12, ['eight', 8, 8, 9], ['one', 1, 2, 9]), { eight: 2 }, 'of equal costs the fewer machines');
});

t.test('where there are too few of one type the others follow', async (t) => {
  t.same(chosen(7, ['a', 4, 4, 1], ['b', 2, 4, 1], ['c', 1, 9, 9]), { a: 1, b: 1, c: 1 });
  t.same(chosen(9, ['a', 4, 4, 1], ['b', 2, 4, 1]), { a: 1, b: 1 }, 'all that there are');
  t.same(chosen(9, ['a', 4, 4, 2], ['b', 2, 9, 0]), { a: 2 });
});

t.test('what a larger machine covers is not asked for as well', async (t) => {
  t.same(chosen(5, ['one', 1, 1, 3], ['four', 4, 5, 9]), { one: 1, four: 1 });
  t.same(chosen(6, ['one', 1, 1, 3], ['eight', 8, 9, 9]), { eight: 1 });
  const three: Row[] = [
    ['one', 1, 1, 3],
    ['two', 2, 2.2, 2],
    ['eight', 8, 9.6, 9],
  ];
  t.same(chosen(12, ...three), { one: 2, two: 1, eight: 1 }, 'of several types just as many as are too many');
});

t.test('nothing for nothing, and of nothing', async (t) => {
  t.same(chosen(0, ['a', 4, 4, 9]), {});
  t.same(chosen(-4, ['a', 4, 4, 9]), {});
  t.same(chosen(4), {});
  t.same(chosen(4, ['a', 4, 4, 0]), {});
});

t.test('ranks of machines', async (t) => {
  t.equal(ranksOf([]), 0);
  t.equal(ranksOf([supply(['a', 4, 1, 2]), supply(['b', 1, 1, 3])]), 11);
});

t.test('a budget pays the cheapest ranks first', async (t) => {
  const paid = (per_hour: number, ...rows: Row[]) =>
    affordable(rows.map(supply), per_hour).map(({ type, machines }) => [type.name, machines]);
  const rows: Row[] = [
    ['dear', 1, 3, 5],
    ['cheap', 4, 4, 2],
  ];
  t.same(paid(100, ...rows), [
    ['cheap', 2],
    ['dear', 5],
  ]);
  t.same(paid(11, ...rows), [
    ['cheap', 2],
    ['dear', 1],
  ]);
  t.same(paid(7, ...rows), [
    ['cheap', 1],
    ['dear', 1],
  ]);
  t.same(paid(3.9, ...rows), [
    ['cheap', 0],
    ['dear', 1],
  ]);
  t.same(paid(-5, ...rows), [
    ['cheap', 0],
    ['dear', 0],
  ]);
  t.same(paid(0, ['free', 1, 0, 5], ['cheap', 4, 4, 2]), [
    ['free', 5],
    ['cheap', 0],
  ]);
  t.same(paid(Number.POSITIVE_INFINITY, ...rows), [
    ['cheap', 2],
    ['dear', 5],
  ]);
});

t.test('for no ranks, and where there are ranks too many, none', async (t) => {
  for (const ranks of [0, -1, -20])
    t.same(chosen(ranks, ['eight', 8, 9, 2], ['one', 1, 2, 8]), {}, `${ranks} ranks`);
});
