import t from 'tap';
import { periodsOf } from './periods.js';

const point = (at: number, epoch: number, ranks: number | null) => ({ at, epoch, values: { ranks } });

t.test('another number of ranks, or another attempt, begins another period', async (t) => {
  t.same(periodsOf([]), []);
  t.same(
    periodsOf([
      point(1, 1, 2),
      point(5, 1, 2),
      point(6, 1, 3),
      point(7, 1, null),
      point(8, 1, 3),
      point(100, 2, 3),
      point(101, 2, 3),
    ]),
    [
      { from: 1, to: 5, ranks: 2 },
      { from: 6, to: 8, ranks: 3 },
      { from: 100, to: 101, ranks: 3 },
    ],
  );
});
