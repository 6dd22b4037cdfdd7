import fc from 'fast-check';
import t from 'tap';
import { gathered, type Period, periodsOf } from './periods.js';

const at = (ms: number) => new Date(ms).toISOString();
const generation = (worldSize: number, from: number, to: number | null) => ({
  world_size: worldSize,
  started_at: at(from),
  ended_at: to === null ? null : at(to),
});

t.test('each generation of each attempt is a period, however short; the last may go on', async (t) => {
  t.same(periodsOf([], 1), []);
  const attempts = [
    { generations: [generation(3, 100, null)] },
    { generations: [] },
    { generations: [generation(2, 1, 5), generation(4, 6, 6), generation(3, 6, 99)] },
  ];
  const before = [
    { from: 1, to: 5, ranks: 2 },
    { from: 6, to: 6, ranks: 4 },
    { from: 6, to: 99, ranks: 3 },
  ];
  t.same(periodsOf(attempts, 200), [...before, { from: 100, to: 200, ranks: 3 }]);
  t.same(periodsOf(attempts, 50).at(-1), { from: 100, to: 100, ranks: 3 }, 'not before its beginning');
});

const periods = fc
  .array(fc.record({ pause: fc.nat(1_000), lasts: fc.nat(1_000), ranks: fc.integer({ min: 1, max: 64 }) }), {
    maxLength: 300,
  })
  .map((all) => {
    let now = 1_000;
    return all.map(({ pause, lasts, ranks }): Period => {
      const from = now + pause;
      now = from + lasts;
      return { from, to: now, ranks };
    });
  });

t.test('many periods are gathered: in order, over the whole time, with the most ranks', async (t) => {
  fc.assert(
    fc.property(periods, fc.integer({ min: 1, max: 50 }), (all, most) => {
      const few = gathered(all, most);
      if (all.length <= most) return JSON.stringify(few) === JSON.stringify(all);
      const isInOrder = few.every(({ from, to }, i) => from <= to && from >= (few[i - 1]?.to ?? 0));
      const isWhole = few[0]?.from === all[0]?.from && few.at(-1)?.to === all.at(-1)?.to;
      const hasAll = all.every((one) =>
        few.some(({ from, to, ranks }) => from <= one.from && one.to <= to && ranks >= one.ranks),
      );
      return few.length <= most + 1 && isInOrder && isWhole && hasAll;
    }),
  );
  t.pass();
});
