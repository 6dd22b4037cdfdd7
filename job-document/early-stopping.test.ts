import t from 'tap';
import { afterEvaluation, hasStoppedEarly, NOT_EVALUATED } from './early-stopping.js';
import { resolveSpec } from './resolve-spec.js';
import { SMALLEST } from './testing/documents.js';

/** Returns the state after evaluations at steps 10, 20, … with these losses. */
const after = (minDelta: number, ...losses: number[]) => afterOf('eval_loss', minDelta, losses);

const afterOf = (metric: string, minDelta: number, losses: readonly number[]) =>
  losses.reduce(
    (state, loss, i) => afterEvaluation(state, { step: 10 * (i + 1), loss }, { min_delta: minDelta, metric }),
    NOT_EVALUATED,
  );

t.test('an improvement is below the best value by at least min_delta', async (t) => {
  const best = (bestStep: number, bestEvalLoss: number, evaluationsWithoutImprovement: number) => ({
    best_eval_loss: bestEvalLoss,
    best_step: bestStep,
    evaluations_without_improvement: evaluationsWithoutImprovement,
  });
  t.strictSame(after(0, 3), best(10, 3, 0));
  t.strictSame(after(0, 3, 3), best(10, 3, 1), 'an equal value is none');
  t.strictSame(after(0, 3, 4, 2.5, 2.75), best(30, 2.5, 1));
  t.strictSame(after(0.5, 3, 2.75, 2.625), best(10, 3, 2), 'small differences add up only to the best value');
  t.strictSame(after(0.5, 3, 2.75, 2.5), best(30, 2.5, 0));
});

t.test('rewards improve when they rise', async (t) => {
  const state = afterOf('eval_reward/held_out', 0.1, [0.5, 0.55, 0.4, 0.625]);
  t.match(state, { best_eval_loss: 0.625, best_step: 40, evaluations_without_improvement: 0 });
  t.match(afterOf('eval_reward/held_out', 0, [0.5, 0.25]), { best_eval_loss: 0.5, best_step: 10 });
});

t.test('a loss that is not finite is no improvement', async (t) => {
  t.strictSame(after(0, Number.NaN, Number.POSITIVE_INFINITY), {
    best_eval_loss: null,
    best_step: null,
    evaluations_without_improvement: 2,
  });
  t.match(after(0, 3, Number.NaN, Number.NEGATIVE_INFINITY), {
    best_step: 10,
    evaluations_without_improvement: 2,
  });
});

t.test('the training ends when patience is used up', async (t) => {
  const { spec } = resolveSpec({ ...SMALLEST, train: { steps: 99, early_stopping: { patience: 2 } } }, null);
  t.notOk(hasStoppedEarly(null, spec));
  t.notOk(hasStoppedEarly(after(0, 3, 4), spec));
  t.ok(hasStoppedEarly(after(0, 3, 4, 4), spec));
  t.notOk(hasStoppedEarly(after(0, 3, 4, 4), resolveSpec(SMALLEST, null).spec));
});
