import fc from 'fast-check';
import t from 'tap';
import type { JobMetric, ResolvedJobSpec } from '../../../../contracts/types.js';
import {
  type CurvePoint,
  columnsOf,
  extended,
  extremesOf,
  MAX_POINTS,
  namesIn,
  pointOf,
  smoothed,
  thinned,
} from './curve.js';

const point = (step: number, loss = step, more: CurvePoint['values'] = {}): CurvePoint => ({
  at: 1000 * step,
  tokens: 100 * step,
  step,
  values: { loss, ...more },
});
const range = (count: number, first = 1) => Array.from({ length: count }, (_, index) => point(first + index));

t.test('a metric has the values of its step, of its evaluation and of its phases', async (t) => {
  const seconds = { total: 6, data: 1, forward: 2, backward: 3, exchange: 0, optimizer: 0, gather: 0 };
  const metric = {
    step: 3,
    at: '2026-11-27T00:00:00.000Z',
    loss: 1,
    lr: 2,
    grad_norm: null,
    tokens_per_second: 4,
    world_size: 5,
    memory_bytes: 6,
    seconds,
    eval_losses: { validation: 7 },
    tokens: 8,
    skipped_steps: 0,
    preference: { margin: 9, accuracy: null },
    system: { cpu: [1, 2], memory_bytes: [3, 4], sent_bytes: [5, 6] },
  };
  const { values } = pointOf(metric as unknown as JobMetric);
  t.match(values, {
    loss: 1,
    lr: 2,
    grad_norm: null,
    ranks: 5,
    memory: 6,
    'eval validation': 7,
    data: 1,
    backward: 3,
    skipped_steps: 0,
    margin: 9,
    accuracy: null,
    'cpu of rank 1': 2,
    'sent_bytes of rank 0': 5,
  });
  t.notOk(namesIn([{ values }]).includes('grad_norm'));
});

t.test('the first points have the extremes of what jumps, and of the evaluations', async (t) => {
  const jumping = ['loss', 'grad_norm', 'tokens_per_second', 'memory_bytes', 'system/cpu/0'];
  const given = (validationFraction: number, names: string[], objective?: object) =>
    ({
      data: { validation_fraction: validationFraction },
      train: { evaluation: { datasets: names.map((name) => ({ name })) }, objective },
    }) as unknown as ResolvedJobSpec;
  t.same(extremesOf(given(0, [])), jumping);
  t.same(extremesOf(given(0.1, [])), [...jumping, 'eval_loss']);
  t.same(extremesOf(given(0, ['code', 'chat'])), [...jumping, 'eval_loss/code', 'eval_loss/chat']);
  const preference = ['preference/margin', 'preference/accuracy'];
  t.same(extremesOf(given(0, ['code'], { type: 'dpo' })), [...jumping, ...preference, 'eval_loss/code']);
  t.equal(extremesOf(given(0.1, ['a', 'b', 'c', 'd', 'e'])).length, 8, 'as many as a request may name');
});

t.test('steps that are done again replace what came after them', async (t) => {
  const before = range(10);
  const again = extended(before, [point(6, 60), point(7, 70)]);
  t.same(again.map(({ step, values }) => [step, values.loss]).slice(4), [
    [5, 5],
    [6, 60],
    [7, 70],
  ]);
  t.same(extended(before, []), before);
});

t.test('any number of steps takes as many points, with the first, the last and evaluations', async (t) => {
  let points: CurvePoint[] = [point(1, 1, { 'eval validation': 1 })];
  for (let step = 2; step <= 50_000; step += 50)
    points = extended(
      points,
      range(50, step).map((one) =>
        one.step % 5_000 === 0 ? point(one.step, 1, { 'eval validation': 2 }) : one,
      ),
    );
  t.ok(points.length <= MAX_POINTS + 1, String(points.length));
  t.equal(points[0]?.step, 1);
  t.equal(points.at(-1)?.step, 50_001);
  t.equal(points.filter(({ values }) => 'eval validation' in values).length, 11);
  t.same(
    points.map(({ step }) => step),
    points.map(({ step }) => step).sort((a, b) => a - b),
  );
  t.equal(thinned(range(MAX_POINTS)).length, MAX_POINTS);
  const evaluated = range(MAX_POINTS + 1).map(({ step }) => point(step, 1, { 'eval validation': 1 }));
  t.equal(thinned(evaluated).length, MAX_POINTS / 2 + 1, 'an evaluation with each step');
});

t.test('smoothing', async (t) => {
  t.same(smoothed([1, null, 3], 0), [1, null, 3]);
  const [first, gap, third] = smoothed([1, null, 3], 0.5);
  t.equal(first, 1, 'no bias at the beginning');
  t.equal(gap, null);
  t.ok(Math.abs((third ?? 0) - (0.5 * 0.5 * 1 + 0.5 * 3) / 0.75) < 1e-12);
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: -10, max: 10, noNaN: true }), { minLength: 1 }),
      fc.double({ min: 0, max: 0.99, noNaN: true }),
      (values, weight) =>
        smoothed(values, weight).every(
          (value) =>
            value !== null && value >= Math.min(...values) - 1e-9 && value <= Math.max(...values) + 1e-9,
        ),
    ),
  );
});

t.test('columns of a chart', async (t) => {
  const points = [point(1, 4, { 'eval a': 9 }), point(2, 0), point(3, 2)];
  t.same(columnsOf(points, ['loss', 'eval a']), [
    [1, 2, 3],
    [4, 0, 2],
    [9, null, null],
  ]);
  t.same(columnsOf(points, ['loss'], { axis: 'tokens' })[0], [100, 200, 300]);
  t.same(columnsOf(points, ['loss'], { logarithmic: true }), [
    [1, 2, 3],
    [4, null, 2],
  ]);
});
