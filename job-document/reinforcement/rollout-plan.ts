/**
 * The calls of a job with reinforcement learning, as a function of its document. A rollout is one `sample` of all its
 * prompts; then `num_iterations` optimizer steps follow, each with the passes of all samples and an `optim_step`. An
 * evaluated step is followed by a `sample` of each evaluation's prompts, and a `save_state`. A `finish` ends the log.
 */
import { ZerofleetError } from '../../contracts/errors.js';
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { isEvaluated } from '../evaluation.js';
import { type Reinforcement, reinforcementOf } from '../objective.js';

/** Maximum size of a call. */
export const MAX_CALL_BYTES = 16 * 2 ** 20;
/** Largest size of a position of a row as text: its token and its target, and three numbers. */
const POSITION_BYTES = 96;

export type CallPlace =
  | { kind: 'sample'; rollout: number }
  /** Samples `[begin, end)` of the rollout. `isFirst`: it follows the `sample`. */
  | { kind: 'pass'; rollout: number; begin: number; end: number; isFirst: boolean }
  /** `done`: steps before it. */
  | { kind: 'update'; done: number }
  /** Answers to the prompts of an evaluation, by its place in `train.evaluation.datasets`. */
  | { kind: 'evaluation'; step: number; index: number }
  | { kind: 'save'; step: number }
  | { kind: 'finish' };

export interface RolloutPlan {
  settings: Reinforcement;
  /** Samples of a rollout. */
  samples: number;
  /** Optimizer steps of the job. */
  steps: number;
  /** Calls of a rollout and its steps. */
  calls: number;
  rowsPerPass: number;
  passes: number;
  evaluation: ResolvedJobSpec['train']['evaluation'];
}

type Train = Pick<
  ResolvedJobSpec['train'],
  'objective' | 'steps' | 'sequence_length' | 'global_batch_size' | 'evaluation'
>;

/** @throws ZerofleetError `internal_error` for a job without reinforcement learning */
export function rolloutPlan(train: Train): RolloutPlan {
  const settings = reinforcementOf(train);
  const { steps, sequence_length, global_batch_size, evaluation } = train;
  if (settings === null || steps === undefined)
    throw new ZerofleetError('internal_error', 'the job has no plan of rollouts');
  const samples = settings.prompts_per_step * settings.group_size;
  const fitting = Math.floor(MAX_CALL_BYTES / POSITION_BYTES / sequence_length);
  const rowsPerPass = Math.max(1, Math.min(global_batch_size, fitting));
  const passes = Math.ceil(samples / rowsPerPass);
  const calls = 1 + settings.num_iterations * (passes + 1);
  return { settings, samples, steps, calls, rowsPerPass, passes, evaluation };
}

/** Returns the rollout whose samples a step uses. @param step from 1 */
export function rolloutOfStep({ settings }: RolloutPlan, step: number): number {
  return Math.floor((step - 1) / settings.num_iterations);
}

/** Returns the number of the `sample` call of a rollout. */
export function sampleNumber({ calls, settings, evaluation }: RolloutPlan, rollout: number): number {
  const { every_steps: every = Number.POSITIVE_INFINITY } = evaluation ?? {};
  const evaluations = Math.floor((rollout * settings.num_iterations) / every);
  return 1 + rollout * calls + evaluations * evaluationCalls(evaluation);
}

/** Returns the number of the first call of the evaluation after a step. */
export function evaluationNumber(plan: RolloutPlan, step: number): number {
  const rollout = rolloutOfStep(plan, step);
  const first = rollout * plan.settings.num_iterations;
  const { every_steps: every = 1 } = plan.evaluation ?? {};
  const before = Math.floor((step - 1) / every) - Math.floor(first / every);
  const calls = (step - first) * (plan.passes + 1) + before * evaluationCalls(plan.evaluation);
  return sampleNumber(plan, rollout) + 1 + calls;
}

function evaluationCalls(evaluation: RolloutPlan['evaluation']): number {
  return evaluation === undefined ? 0 : evaluation.datasets.length + 1;
}

/** Returns what the call with this number does. */
export function placeOf(plan: RolloutPlan, number: number): CallPlace {
  const { passes, samples, steps, rowsPerPass, settings, evaluation } = plan;
  const rollout = rolloutAt(plan, number);
  let at = number - sampleNumber(plan, rollout);
  const first = rollout * settings.num_iterations;
  if (at === 0) return { kind: 'sample', rollout };
  at -= 1;
  for (let done = first; done < Math.min(steps, first + settings.num_iterations); done += 1) {
    if (at === passes) return { kind: 'update', done };
    if (at < passes) {
      const begin = at * rowsPerPass;
      const end = Math.min(samples, begin + rowsPerPass);
      return { kind: 'pass', rollout, begin, end, isFirst: done === first && at === 0 };
    }
    at -= passes + 1;
    if (!isEvaluated(plan, done + 1)) continue;
    const index = at;
    at -= evaluationCalls(evaluation);
    if (at === -1) return { kind: 'save', step: done + 1 };
    if (at < 0) return { kind: 'evaluation', step: done + 1, index };
  }
  return { kind: 'finish' };
}

/** Returns the last rollout whose `sample` is not behind the call. */
export function rolloutAt(plan: RolloutPlan, number: number): number {
  let [low, high] = [0, rolloutOfStep(plan, plan.steps)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (sampleNumber(plan, middle) <= number) low = middle;
    else high = middle - 1;
  }
  return low;
}
