import type { ModelConfig } from './model-config.js';

export type Precision = 'bf16' | 'fp16' | 'fp32';

/** All fields are there; those that are not of the type are ignored. */
export interface OptimizerConfig {
  type: 'adamw' | 'adam' | 'lamb' | 'lion' | 'adagrad' | 'sgd';
  lr: number;
  beta1: number;
  beta2: number;
  eps: number;
  weight_decay: number;
  momentum: number;
  dampening: number;
  nesterov: boolean;
  lr_decay: number;
  initial_accumulator_value: number;
  min_coeff: number;
  max_coeff: number;
  bias_correction: 'update' | 'step_size' | 'none';
  /** Decay of the moving average of the master weights, for an optimizer of any type; 0: no average is kept. */
  ema_decay: number;
}

/** Settings of the parameters whose names match (`*` any characters, `?` one); the first entry that matches counts. */
interface ParamGroupConfig {
  match: string;
  /** Times the learning rate of the step. */
  lr_scale: number;
  /** Null: the optimizer's for matrices, 0 for norms and biases. */
  weight_decay: number | null;
  frozen: boolean;
}

interface LrScheduleConfig {
  type: 'constant' | 'linear' | 'cosine' | 'wsd';
  warmup_steps: number;
  warmup_type: 'linear' | 'log';
  warmup_start_lr: number;
  min_lr: number;
  /** Length of the decay at the end of `wsd`; the others ignore it. */
  decay_steps: number;
}

interface LossScaleConfig {
  type: 'none' | 'static' | 'dynamic';
  initial_scale: number;
  window: number;
  hysteresis: number;
  consecutive_hysteresis: boolean;
  min_scale: number;
  /** Null: training goes on after any number of skipped steps. */
  max_skipped_steps: number | null;
}

/** In force from the step after `step` finished ones on; null goes back to the schedule or the loss scaler. */
interface OverrideConfig {
  step: number;
  lr?: number | null;
  loss_scale?: number | null;
  /** Rates of groups of parameters, by their `match`. */
  group_lr?: Record<string, number | null>;
}

export interface ZeroConfig {
  stage: 1 | 2;
  /** Lanes of stage 1; stage 2 ignores it. */
  lanes: number;
  /** Consecutive lanes that are added up first. */
  lane_group: number;
  bucket_bytes: number;
  reduce_dtype: Precision;
  grad_accum_dtype: Precision;
  master_dtype: 'fp32' | 'fp16';
  gradient_predivide_factor: number;
  offload: 'none' | 'cpu';
  expert_parallel_size: number;
}

/** A preference objective; the formulas stand in native/model/objective/objective.h. All fields are there; those of other types have their neutral values. */
interface PreferenceConfig {
  type: 'dpo' | 'ipo' | 'orpo' | 'kto' | 'simpo';
  beta: number;
  /** 0 but for `dpo`. */
  label_smoothing: number;
  /** 0 but for `simpo`. */
  gamma: number;
  /** 1 but for `kto`. */
  desirable_weight: number;
  undesirable_weight: number;
  /** Reference model: the model without its adapter, or as the training begins; `none` for `orpo` and `simpo`. */
  reference: 'none' | 'base' | 'initial';
}

/** Training configuration of a rank. All but rank, world size, threads and paths is the same on every rank. */
export interface TrainerConfig {
  model: ModelConfig;
  /** Device of parameters, activations and, unless offloaded, states. */
  device: DeviceKind;
  /**
   * GPU memory taken before anything else: a job that does not fit fails immediately, and no step waits for
   * memory; 0 on a CPU.
   */
  reserved_bytes: number;
  /** Keep each layer's input only and run the layer again before its backward: less memory, the same bits. */
  activation_checkpointing: boolean;
  rank: number;
  world_size: number;
  threads: number;
  precision: Precision;
  sequence_length: number;
  global_batch_size: number;
  micro_batch_size: number;
  /** Null: the mean loss of all targets. Otherwise batch sizes count units: pairs of sequences, or in `kto` sequences. */
  preference: PreferenceConfig | null;
  /** Total steps of the job: the end of the learning-rate schedule. */
  steps: number;
  seed: number;
  data_seed: number;
  optimizer: OptimizerConfig;
  param_groups: ParamGroupConfig[];
  lr_schedule: LrScheduleConfig;
  /** Largest norm of the averaged gradient; 0 is off. */
  gradient_clipping: number;
  gradient_clipping_norm: 'l2' | 'max';
  loss_scale: LossScaleConfig;
  /** Ascending in `step`. */
  overrides: OverrideConfig[];
  zero: ZeroConfig;
  /** Path of the training tokens, in the format of native/data/token_file.h. */
  token_file: string;
  /** Paths of the tokens to evaluate on, in the same format. */
  evaluation_files: string[];
  /** `solo` is for a world of one, else `gloo` on CPUs, where `bind_address` is this host's as the other ranks reach it, and `nccl` on GPUs. */
  comm: { backend: 'solo' | 'gloo' | 'nccl'; bind_address: string; timeout_ms: number };
}

type Settings =
  | 'preference'
  | 'optimizer'
  | 'param_groups'
  | 'lr_schedule'
  | 'gradient_clipping'
  | 'gradient_clipping_norm'
  | 'loss_scale'
  | 'overrides'
  | 'zero';

/** AdamW on ZeRO stage 2 with everything optional left out: a start for benchmarks and tests. */
export function plainSettings(precision: Precision): Pick<TrainerConfig, Settings> {
  return {
    preference: null,
    optimizer: {
      type: 'adamw',
      lr: 1e-3,
      beta1: 0.9,
      beta2: 0.95,
      eps: 1e-8,
      weight_decay: 0.1,
      momentum: 0.9,
      dampening: 0,
      nesterov: false,
      lr_decay: 0,
      initial_accumulator_value: 0,
      min_coeff: 0.01,
      max_coeff: 10,
      bias_correction: 'update',
      ema_decay: 0,
    },
    param_groups: [],
    lr_schedule: {
      type: 'constant',
      warmup_steps: 0,
      warmup_type: 'linear',
      warmup_start_lr: 0,
      min_lr: 0,
      decay_steps: 0,
    },
    gradient_clipping: 1,
    gradient_clipping_norm: 'l2',
    loss_scale: {
      type: precision === 'fp16' ? 'dynamic' : 'none',
      initial_scale: 65_536,
      window: 1000,
      hysteresis: 2,
      consecutive_hysteresis: false,
      min_scale: 1,
      max_skipped_steps: 100,
    },
    overrides: [],
    zero: {
      stage: 2,
      lanes: 1,
      lane_group: 1,
      bucket_bytes: 16 << 20,
      reduce_dtype: precision,
      grad_accum_dtype: 'fp32',
      master_dtype: 'fp32',
      gradient_predivide_factor: 1,
      offload: 'none',
      expert_parallel_size: 1,
    },
  };
}

/** Device that a rank computes on: the CPU, or the first CUDA device that its process sees (CUDA_VISIBLE_DEVICES). */
export type DeviceKind = 'cpu' | 'cuda';
