import type { StepSeconds } from '../../contracts/index.js';
import type { SteppedMessage } from '../../contracts/rank-protocol.js';

/** Durations of a step of 0.5 s. */
export const STEP_SECONDS: StepSeconds = {
  total: 0.5,
  data: 0.01,
  forward: 0.14,
  backward: 0.3,
  exchange: 0.02,
  optimizer: 0.02,
  gather: 0.01,
};

/** Returns rank 0's message of an ordinary step. */
export function stepped(step: number, fields: Partial<SteppedMessage> = {}): SteppedMessage {
  return {
    kind: 'stepped',
    step,
    loss: 2,
    aux_loss: null,
    preference: null,
    passes: {},
    grad_norm: 1,
    lr: 0.1,
    trust_ratios: [],
    tokens: 1000,
    total_tokens: 1000 * step,
    padding: 0.25,
    evaluations: [],
    early_stopping: null,
    finite: true,
    skipped_steps: 0,
    loss_scale: 1,
    seconds: STEP_SECONDS,
    ...fields,
  };
}
