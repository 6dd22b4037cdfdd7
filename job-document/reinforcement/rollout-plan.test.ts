import t from 'tap';
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { placeOf, rolloutOfStep, rolloutPlan, sampleNumber } from './rollout-plan.js';

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

t.test('a pass of long rows fits into a call', async (t) => {
  t.equal(plan({}, { sequence_length: 65_536 }).rowsPerPass, 2);
  t.throws(() => rolloutPlan({ steps: 3, sequence_length: 16, global_batch_size: 5 }), {
    code: 'internal_error',
  });
});
