/** Calls of sessions with the fake core. */
import type { StoredCall } from '../../contracts/index.js';

export const PASS = {
  type: 'forward_backward',
  loss: { type: 'cross_entropy' },
  rows: [{ tokens: [1, 2, 3], targets: [2, 3, -100] }],
} satisfies StoredCall;

export const UPDATE = {
  type: 'optim_step',
  lr: 0.5,
  betas: [0.9, 0.95],
  eps: 1e-8,
  weight_decay: 0,
  gradient_clipping: 1,
} satisfies StoredCall;

export const SAVE = { type: 'save_state' } satisfies StoredCall;
export const FINISH = { type: 'finish' } satisfies StoredCall;

export const updates = (count: number): StoredCall[] =>
  Array.from({ length: count }, () => [PASS, UPDATE]).flat();
