import t from 'tap';
import { AXES, positionsOf } from './chart-axes.js';

const point = (step: number, seconds: number) => ({ step, tokens: 100 * step, at: 1000 * seconds });
const POINTS = [point(1, 10), point(2, 12), point(5, 11), point(9, 3700)];

t.test('points by step, by tokens, and by the seconds since the first one', async (t) => {
  t.same(AXES.step.positions(POINTS), [1, 2, 5, 9]);
  t.same(AXES.tokens.positions(POINTS), [100, 200, 500, 900]);
  t.same(AXES.time.positions(POINTS), [0, 2, 2, 3690], 'the clock of another worker does not turn time back');
  t.equal(AXES.time.format(3690), '1 h 1 min');
});

t.test('ticks of steps and tokens are whole numbers', async (t) => {
  for (const { increments } of [AXES.step, AXES.tokens])
    t.ok(increments.every((increment) => Number.isInteger(increment)));
  t.same(
    AXES.time.increments.toSorted((a, b) => a - b),
    AXES.time.increments,
    'uPlot takes the first that fits',
  );
});

t.test('marks of steps stand at the first point that is as far', async (t) => {
  t.same(positionsOf('step', POINTS, [3, 20]), [3, 20]);
  t.same(positionsOf('tokens', POINTS, [2, 3, 20]), [200, 500]);
  t.same(positionsOf('time', POINTS, [1]), [0]);
});
