import t from 'tap';
import type { ResolvedJobSpec, SweepSpec } from '../../contracts/index.js';
import { testSpec } from '../../state/testing/jobs.js';
import { comparisonOf } from './rungs.js';

function specOf(train: object, validation = 0.1): ResolvedJobSpec {
  const spec = testSpec('ds_01KAJX8W3Q5R7T9V1X3Z5B7D9F');
  return {
    ...spec,
    data: { ...spec.data, validation_fraction: validation },
    train: { ...spec.train, ...train },
  };
}

const evaluated = (steps: number, every: number) =>
  specOf({ steps, evaluation: { every_steps: every, datasets: [] } });
const halving = (changes: Partial<SweepSpec> = {}) =>
  ({ method: 'successive_halving', ...changes }) as SweepSpec;
const pointersOf = (found: ReturnType<typeof comparisonOf>) =>
  'errors' in found ? found.errors.map(({ pointer, code }) => [pointer, code]) : found;
const many = (spec: ResolvedJobSpec, count: number) => Array<ResolvedJobSpec>(count).fill(spec);

t.test('rungs are evaluations, at growing steps with fewer runs', (t) => {
  t.same(comparisonOf(halving({ min_steps: 25 }), many(evaluated(400, 10), 27)), {
    metric: 'eval_loss',
    rungs: [
      { step: 30, runs: 27 },
      { step: 80, runs: 9 },
      { step: 230, runs: 3 },
      { step: null, runs: 1 },
    ],
  });
  t.match(comparisonOf(halving({ factor: 2 }), many(evaluated(100, 10), 5)), {
    rungs: [
      { step: 30, runs: 5 },
      { step: 50, runs: 2 },
      { step: null, runs: 1 },
    ],
  });
  t.match(comparisonOf({} as SweepSpec, many(evaluated(100, 10), 5)), { rungs: [{ step: null, runs: 5 }] });
  t.end();
});

t.test('runs that cannot be compared are refused', (t) => {
  const without = specOf({}, 0);
  t.same(pointersOf(comparisonOf({} as SweepSpec, [without])), [
    ['/spec/data/validation_fraction', 'evaluation_missing'],
  ]);
  t.same(pointersOf(comparisonOf({ metric: 'eval_loss/x' } as SweepSpec, [evaluated(9, 1)])), [
    ['/metric', 'evaluation_missing'],
  ]);
  t.same(pointersOf(comparisonOf(halving(), [evaluated(100, 10), evaluated(200, 10)])), [
    ['/spec/train/steps', 'sweep_comparison_differs'],
  ]);
  t.same(pointersOf(comparisonOf(halving(), [evaluated(100, 10), evaluated(100, 20)])), [
    ['/spec/train/evaluation/every_steps', 'sweep_comparison_differs'],
  ]);
  for (const specs of [many(evaluated(100, 100), 9), [evaluated(100, 10)]])
    t.same(pointersOf(comparisonOf(halving(), specs)), [
      ['/spec/train/evaluation/every_steps', 'sweep_rungs_missing'],
    ]);
  t.same(pointersOf(comparisonOf(halving(), [specOf({ steps: undefined })])), [
    ['/spec/train/steps', 'sweep_rungs_missing'],
  ]);
  t.end();
});
