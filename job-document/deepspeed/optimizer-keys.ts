import type { OptimizerType } from '../resolve/optimizer.js';
import { holds, type Keys, mapped, named, only, refused } from './key.js';

/** DeepSpeed optimizer: its type here, its keys, and DeepSpeed's defaults. */
export interface OptimizerImport {
  type: OptimizerType;
  params: Keys;
  /** Fields of `train.optimizer`. */
  defaults: Readonly<Record<string, unknown>>;
  /** Conversions of values with another name here. */
  convert?: Readonly<Record<string, (value: unknown) => unknown>>;
}

const lr = mapped('number', 'train.optimizer.lr; the scheduler may override it');
const weightDecay = mapped('number', 'train.optimizer.weight_decay');
const betas = mapped('list', 'train.optimizer.betas');
const eps = mapped('number', 'train.optimizer.eps');
const maxGradNorm = refused('DeepSpeed refuses it as well: use gradient_clipping');
const amsgrad = only([false], 'there is no AMSGrad');

/** Options of the implementation that do not change the update. */
const IMPLEMENTATION: Keys = named(
  ['fused', 'foreach', 'capturable', 'differentiable', 'set_grad_none', 'torch_adam'],
  holds('boolean', 'it does not change the update'),
);
const COMMON: Keys = {
  lr,
  weight_decay: weightDecay,
  max_grad_norm: maxGradNorm,
  ...IMPLEMENTATION,
  maximize: only([false], 'the loss is minimized'),
  fp32_optimizer_states: only([true], 'optimizer states are fp32'),
};
const ADAM: Keys = {
  ...COMMON,
  betas,
  eps,
  amsgrad,
  bias_correction: only([true], 'the bias of the moments is always corrected'),
  adam_w_mode: mapped('boolean', 'train.optimizer.type: adamw, or adam for false with the type Adam'),
};
const ADAM_DEFAULTS = { lr: 1e-3, weight_decay: 0, betas: [0.9, 0.999], eps: 1e-8 };

/** By name in lower case: DeepSpeed does not distinguish `AdamW` from `adamw`. */
export const OPTIMIZERS: Readonly<Record<string, OptimizerImport>> = {
  adam: { type: 'adamw', params: ADAM, defaults: ADAM_DEFAULTS },
  adamw: { type: 'adamw', params: ADAM, defaults: ADAM_DEFAULTS },
  lamb: {
    type: 'lamb',
    params: {
      ...COMMON,
      betas,
      eps,
      amsgrad,
      max_grad_norm: only([0], 'write gradient_clipping'),
      bias_correction: mapped('boolean', 'train.optimizer.bias_correction: step_size, or none for false'),
      eps_inside_sqrt: only([false], 'eps is added to the root of the second moment'),
      min_coeff: mapped('number', 'train.optimizer.min_coeff'),
      max_coeff: mapped('number', 'train.optimizer.max_coeff'),
    },
    defaults: { ...ADAM_DEFAULTS, min_coeff: 0.01, max_coeff: 10, bias_correction: 'step_size' },
    convert: { bias_correction: (corrects) => (corrects === false ? 'none' : 'step_size') },
  },
  lion: {
    type: 'lion',
    params: { ...COMMON, betas },
    defaults: { lr: 1e-3, weight_decay: 0, betas: [0.9, 0.999] },
  },
  adagrad: {
    type: 'adagrad',
    params: {
      ...COMMON,
      eps,
      amsgrad,
      lr_decay: mapped('number', 'train.optimizer.lr_decay'),
      initial_accumulator_value: mapped('number', 'train.optimizer.initial_accumulator_value'),
    },
    defaults: { lr: 1e-2, weight_decay: 0, eps: 1e-10, lr_decay: 0, initial_accumulator_value: 0 },
  },
  sgd: {
    type: 'sgd',
    params: {
      ...COMMON,
      momentum: mapped('number', 'train.optimizer.momentum'),
      dampening: mapped('number', 'train.optimizer.dampening'),
      nesterov: mapped('boolean', 'train.optimizer.nesterov'),
    },
    defaults: { lr: 1e-3, weight_decay: 0, momentum: 0, dampening: 0, nesterov: false },
  },
};

const ONE_BIT =
  'gradients are exchanged uncompressed, so that the result does not depend on the number of ranks: use Adam, AdamW or Lamb, ' +
  'and communication_data_type bf16 or fp16 for less traffic';
const MU_P =
  'the document has no widths for maximal update parametrization: use Adam, AdamW or SGD, and set the rates of ' +
  'groups of parameters in train.optimizer.param_groups';

/** DeepSpeed's optimizers that are not supported, with the remedy. */
export const REFUSED_OPTIMIZERS: Readonly<Record<string, string>> = {
  onebitadam: ONE_BIT,
  onebitlamb: ONE_BIT,
  zerooneadam: ONE_BIT,
  muadam: MU_P,
  muadamw: MU_P,
  musgd: MU_P,
  muon: 'Muon is not supported: use AdamW',
};
