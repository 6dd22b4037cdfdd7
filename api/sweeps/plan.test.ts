import t from 'tap';
import type { SweepSpec } from '../../contracts/index.js';
import { planRuns } from './plan.js';

const spec = { name: 'book', model: { preset: 'llama-tiny' }, data: { dataset: 'ds' }, train: { steps: 8 } };
const plan = (changes: Partial<SweepSpec>) =>
  planRuns({ spec, space: {}, ...changes } as SweepSpec, { sweep: 'swp_1' });
const rates = { 'train.optimizer.lr': { min: 1e-5, max: 1e-2, scale: 'log' as const } };

t.test('a grid has all combinations, named by their values', (t) => {
  const { runs, errors } = plan({
    space: { 'train.optimizer.lr': { values: [1e-3, 3e-4] }, 'train.seed': { values: [1, 2] } },
  });
  t.same(errors, []);
  t.same(
    runs.map(({ name }) => name),
    ['book lr=0.001 seed=1', 'book lr=0.001 seed=2', 'book lr=0.0003 seed=1', 'book lr=0.0003 seed=2'],
  );
  t.same(runs[1]?.document, {
    ...spec,
    name: 'book lr=0.001 seed=2',
    labels: { sweep: 'swp_1' },
    train: { steps: 8, seed: 2, optimizer: { lr: 1e-3 } },
  });
  t.end();
});

t.test('fields with the same last name are named by their path; null removes a field', (t) => {
  const { runs } = plan({ space: { 'data.seed': { values: [1] }, 'train.seed': { values: [2] } } });
  t.equal(runs[0]?.name, 'book data.seed=1 train.seed=2');
  t.same(plan({ space: { 'train.steps': { values: [null] } } }).runs[0]?.document.train, {});
  const [odd] = plan({ space: { 'train.optimizer.a\\.b': { values: ['x'] } } }).runs;
  t.same(odd?.document.train, { steps: 8, optimizer: { 'a.b': 'x' } });
  t.equal(
    plan({ name: 'n'.repeat(100), space: { 'train.seed': { values: [1] } } }).runs[0]?.name.length,
    100,
  );
  t.end();
});

t.test('random values depend on the seed only, and differ', (t) => {
  const space = { ...rates, 'train.seed': { min: 1, max: 3, scale: 'integer' as const } };
  const draw = (seed: number, runs = 40) =>
    plan({ space, method: 'random', runs, seed }).runs.map(({ values }) => values);
  t.same(draw(1), draw(1));
  t.same(draw(1, 5), draw(1).slice(0, 5), 'more runs add to the first ones');
  t.notSame(draw(1), draw(2));
  t.equal(new Set(draw(1).map((values) => JSON.stringify(values))).size, 40);
  const seen = draw(1).map((values) => Number(values['train.optimizer.lr']));
  t.ok(seen.every((lr) => lr >= 1e-5 && lr <= 1e-2 && lr === Number(lr.toPrecision(4))));
  const low = seen.filter((lr) => lr < 10 ** -3.5).length;
  t.ok(low > 10 && low < 30, `half of the logarithms are in the lower half (${low} of 40)`);
  t.same([...new Set(draw(1).map((values) => values['train.seed']))].sort(), [1, 2, 3]);
  t.end();
});

t.test('a space that cannot be planned is refused', (t) => {
  const refused = (changes: Partial<SweepSpec>) =>
    plan(changes).errors.map(({ pointer, code }) => [pointer, code]);
  const values = { values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] };
  t.same(refused({ space: rates }), [['/space/train.optimizer.lr', 'sweep_values_missing']]);
  t.same(refused({ space: { 'train.seed': values, 'data.seed': values } }), [
    ['/space', 'sweep_too_many_runs'],
  ]);
  t.same(refused({ space: rates, method: 'random' }), [['/runs', 'sweep_runs_missing']]);
  const few = plan({ space: { 'train.seed': { values: [1, 2] } }, method: 'random', runs: 3 }).errors;
  t.match(few, [{ pointer: '/runs', code: 'sweep_too_few_values', suggestion: '2' }]);
  for (const range of [
    { min: 2, max: 1 },
    { min: 0, max: 1, scale: 'log' as const },
    { min: 0.1, max: 0.9, scale: 'integer' as const },
  ])
    t.same(refused({ space: { 'a/b': range }, method: 'random', runs: 1 }), [
      ['/space/a~1b', 'sweep_range_empty'],
    ]);
  t.end();
});
