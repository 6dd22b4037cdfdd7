/**
 * The calls of a job with reinforcement learning, as a function of its document. A rollout is one `sample` of all its
 * prompts; then `num_iterations` optimizer steps follow, each with the passes of all samples and an `optim_step`. The
 * last call is a `finish`.
 */
import { ZerofleetError } from '../../contracts/errors.js';
import type { ResolvedJobSpec } from '../../contracts/index.js';
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
}

type Train = Pick<ResolvedJobSpec['train'], 'objective' | 'steps' | 'sequence_length' | 'global_batch_size'>;

/** @throws ZerofleetError `internal_error` for a job without reinforcement learning */
export function rolloutPlan(train: Train): RolloutPlan {
  const settings = reinforcementOf(train);
  const { steps, sequence_length, global_batch_size } = train;
  if (settings === null || steps === undefined)
    throw new ZerofleetError('internal_error', 'the job has no plan of rollouts');
  const samples = settings.prompts_per_step * settings.group_size;
  const fitting = Math.floor(MAX_CALL_BYTES / POSITION_BYTES / sequence_length);
  const rowsPerPass = Math.max(1, Math.min(global_batch_size, fitting));
  const passes = Math.ceil(samples / rowsPerPass);
  const calls = 1 + settings.num_iterations * (passes + 1);
  return { settings, samples, steps, calls, rowsPerPass, passes };
}

/** Returns the rollout whose samples a step uses. @param step from 1 */
export function rolloutOfStep({ settings }: RolloutPlan, step: number): number {
  return Math.floor((step - 1) / settings.num_iterations);
}

/** Returns the number of the `sample` call of a rollout. */
export function sampleNumber({ calls }: RolloutPlan, rollout: number): number {
  return 1 + rollout * calls;
}

/** Returns what the call with this number does. */
export function placeOf(plan: RolloutPlan, number: number): CallPlace {
  const { calls, passes, samples, steps, rowsPerPass, settings } = plan;
  const rollout = Math.floor((number - 1) / calls);
  const at = (number - 1) % calls;
  const done = rollout * settings.num_iterations + Math.max(0, Math.ceil(at / (passes + 1)) - 1);
  if (done >= steps) return { kind: 'finish' };
  if (at === 0) return { kind: 'sample', rollout };
  const pass = (at - 1) % (passes + 1);
  if (pass === passes) return { kind: 'update', done };
  const begin = pass * rowsPerPass;
  return { kind: 'pass', rollout, begin, end: Math.min(samples, begin + rowsPerPass), isFirst: at === 1 };
}
