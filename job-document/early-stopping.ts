/**
 * Early stopping: a pure function of the losses of the evaluations, which are bit-identical on any number of ranks and
 * follow fixed steps. Its state is saved in each checkpoint, so an interruption does not change the step at which the
 * training ends.
 */

import { gainOf } from '../contracts/evaluation-metrics.js';
import type { EarlyStoppingState } from '../contracts/rank-protocol.js';
import type { ResolvedJobSpec } from '../contracts/types.js';

type EarlyStopping = NonNullable<ResolvedJobSpec['train']['early_stopping']>;

/** State before the first evaluation. */
export const NOT_EVALUATED: EarlyStoppingState = {
  best_eval_loss: null,
  best_step: null,
  evaluations_without_improvement: 0,
};

/** Returns the state after an evaluation. A loss that is not finite is no improvement. */
export function afterEvaluation(
  before: EarlyStoppingState,
  { step, loss }: { step: number; loss: number },
  { min_delta, metric }: Pick<EarlyStopping, 'min_delta' | 'metric'>,
): EarlyStoppingState {
  const { best_eval_loss: best, evaluations_without_improvement } = before;
  const gain = best === null ? Number.POSITIVE_INFINITY : gainOf(metric, loss, best);
  const improves = Number.isFinite(loss) && gain > 0 && gain >= min_delta;
  if (improves) return { best_eval_loss: loss, best_step: step, evaluations_without_improvement: 0 };
  return { ...before, evaluations_without_improvement: evaluations_without_improvement + 1 };
}

/** Returns whether the evaluations end the training. */
export function hasStoppedEarly(
  state: EarlyStoppingState | null,
  { train: { early_stopping } }: ResolvedJobSpec,
): boolean {
  return (
    state !== null &&
    early_stopping !== undefined &&
    state.evaluations_without_improvement >= early_stopping.patience
  );
}
