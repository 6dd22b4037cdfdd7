import t from 'tap';
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { evaluationNumber, placeOf, rolloutOfStep, rolloutPlan, sampleNumber } from './rollout-plan.js';

const plan = (changes: object = {}, train: object = {}) =>
  rolloutPlan({
    steps: 3,
    sequence_length: 16,
    global_batch_size: 5,
    objective: { type: 'grpo', prompts_per_step: 3, group_size: 4, num_iterations: 2, ...changes },
    ...train,
  } as ResolvedJobSpec['train']);

t.test('every call has a place, also of a last rollout that is not used up', async (t) => {
  const passes = (rollout: number, isFirst = true) =>
    [
      [0, 5],
      [5, 10],
      [10, 12],
    ].map(([begin, end]) => ({ kind: 'pass', rollout, begin, end, isFirst: isFirst && begin === 0 }));
  const places = Array.from({ length: 15 }, (_, i) => placeOf(plan(), i + 1));
  t.same(places, [
    { kind: 'sample', rollout: 0 },
    ...passes(0),
    { kind: 'update', done: 0 },
    ...passes(0, false),
    { kind: 'update', done: 1 },
    { kind: 'sample', rollout: 1 },
    ...passes(1),
    { kind: 'update', done: 2 },
    { kind: 'finish' },
  ]);
  t.same(
    [1, 2, 3].map((step) => rolloutOfStep(plan(), step)),
    [0, 0, 1],
  );
  t.equal(sampleNumber(plan(), 1), 10);
});

t.test('a last rollout that is used up is followed by the finish', async (t) => {
  const used = plan({ num_iterations: 1 }, { steps: 2 });
  t.same(placeOf(used, 10), { kind: 'update', done: 1 });
  t.same(placeOf(used, 11), { kind: 'finish' });
});

t.test('evaluations follow their steps, and the last step', async (t) => {
  const evaluation = { every_steps: 2, datasets: [{ name: 'a' }, { name: 'b' }] };
  const evaluated = plan({}, { steps: 5, evaluation });
  const kinds = Array.from({ length: 34 }, (_, i) => placeOf(evaluated, i + 1)).filter(
    ({ kind }) => kind !== 'pass',
  );
  const evaluationOf = (step: number) => [
    { kind: 'evaluation', step, index: 0 },
    { kind: 'evaluation', step, index: 1 },
    { kind: 'save', step },
  ];
  t.same(kinds, [
    { kind: 'sample', rollout: 0 },
    { kind: 'update', done: 0 },
    { kind: 'update', done: 1 },
    ...evaluationOf(2),
    { kind: 'sample', rollout: 1 },
    { kind: 'update', done: 2 },
    { kind: 'update', done: 3 },
    ...evaluationOf(4),
    { kind: 'sample', rollout: 2 },
    { kind: 'update', done: 4 },
    ...evaluationOf(5),
    { kind: 'finish' },
    { kind: 'finish' },
  ]);
  for (const rollout of [0, 1, 2])
    t.same(placeOf(evaluated, sampleNumber(evaluated, rollout)), { kind: 'sample', rollout });
  for (const everySteps of [1, 2, 3]) {
    const other = plan(
      { num_iterations: 2 },
      { steps: 7, evaluation: { ...evaluation, every_steps: everySteps } },
    );
    for (const step of [everySteps, 2 * everySteps, 7])
      t.same(placeOf(other, evaluationNumber(other, step)), { kind: 'evaluation', step, index: 0 });
  }
});

t.test('a pass of long rows fits into a call', async (t) => {
  t.equal(plan({}, { sequence_length: 65_536 }).rowsPerPass, 2);
  t.throws(() => rolloutPlan({ steps: 3, sequence_length: 16, global_batch_size: 5 }), {
    code: 'internal_error',
  });
});
