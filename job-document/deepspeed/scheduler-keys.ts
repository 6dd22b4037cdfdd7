import { type Keys, mapped, only } from './key.js';

/** DeepSpeed scheduler: its type here, its keys, and DeepSpeed's defaults. */
export interface SchedulerImport {
  type: 'constant' | 'linear' | 'cosine';
  params: Keys;
  defaults: Readonly<Record<string, unknown>>;
}

const WARM_UP: Keys = {
  warmup_num_steps: mapped('integer', 'train.lr_schedule.warmup_steps, at least 2 unless it is 0'),
  warmup_type: mapped('string', 'train.lr_schedule.warmup_type; log when absent'),
  last_batch_iteration: only(
    [-1],
    'a job starts at step 0; use model.init_from to start from the state of another job',
  ),
};
const RATES: Keys = {
  warmup_min_lr: mapped('number', 'train.lr_schedule.warmup_start_lr'),
  warmup_max_lr: mapped(
    'number',
    'train.optimizer.lr; it overrides the lr of the optimizer, also by default (0.001)',
  ),
};
const RATE_DEFAULTS = { warmup_min_lr: 0, warmup_max_lr: 0.001 };
const totalNumSteps = mapped('integer', 'train.steps');

/** By DeepSpeed's name. */
export const SCHEDULERS: Readonly<Record<string, SchedulerImport>> = {
  WarmupLR: {
    type: 'constant',
    params: { ...WARM_UP, ...RATES },
    defaults: { ...RATE_DEFAULTS, warmup_num_steps: 1000, warmup_type: 'log' },
  },
  WarmupDecayLR: {
    type: 'linear',
    params: { ...WARM_UP, ...RATES, total_num_steps: totalNumSteps },
    defaults: { ...RATE_DEFAULTS, warmup_num_steps: 1000, warmup_type: 'log' },
  },
  WarmupCosineLR: {
    type: 'cosine',
    params: {
      ...WARM_UP,
      total_num_steps: totalNumSteps,
      warmup_min_ratio: mapped('number', 'train.lr_schedule.warmup_start_lr = ratio × lr'),
      cos_min_ratio: mapped('number', 'train.lr_schedule.min_lr = ratio × lr'),
    },
    defaults: { warmup_min_ratio: 0, cos_min_ratio: 0.0001, warmup_num_steps: 1000, warmup_type: 'log' },
  },
};

/** DeepSpeed's schedulers that are not supported, with the remedy. */
export const REFUSED_SCHEDULERS: Readonly<Record<string, string>> = {
  OneCycle:
    'cyclic rates and momenta are not supported: use WarmupDecayLR or WarmupCosineLR, or no scheduler and a ' +
    'train.lr_schedule of type wsd',
  LRRangeTest: 'range tests are not supported: create a short job for each rate',
};
