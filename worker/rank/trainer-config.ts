import type { StartMessage } from '../../contracts/rank-protocol.js';
import { estimateRank, trainedArchitecture } from '../../job-document/index.js';
import type { TrainerConfig } from '../shared/native/adapter.js';

/** Returns the native core's configuration of one rank. */
export function trainerConfig(start: StartMessage): TrainerConfig {
  const { train, zero, data } = start.spec;
  const { gradient_clipping, gradient_clipping_norm, overrides } = train;
  return {
    // The core's fields are those of an architecture.
    model: trainedArchitecture(start.spec),
    device: start.device,
    reserved_bytes: reservedBytes(start),
    activation_checkpointing: train.activation_checkpointing,
    rank: start.rank,
    world_size: start.world_size,
    threads: start.threads,
    precision: train.precision,
    sequence_length: train.sequence_length,
    global_batch_size: train.global_batch_size,
    micro_batch_size: train.micro_batch_size,
    preference: preferenceConfig(train.objective),
    steps: train.steps,
    seed: train.seed,
    data_seed: data.seed,
    optimizer: { ...optimizerConfig(train.optimizer), ema_decay: train.ema?.decay ?? 0 },
    param_groups: paramGroups(train.optimizer),
    lr_schedule: { ...train.lr_schedule, decay_steps: train.lr_schedule.decay_steps ?? 0 },
    gradient_clipping,
    gradient_clipping_norm,
    loss_scale: { ...UNUSED_LOSS_SCALE, ...train.loss_scale },
    overrides,
    zero: { ...zero, lanes: zero.lanes ?? 1 },
    token_file: start.token_file,
    evaluation_files: start.evaluation_files.map(({ path }) => path),
    comm: { backend: backendOf(start), ...start.comm },
  };
}

/** Returns the GPU memory that this rank reserves, by the estimate of its placement. */
function reservedBytes({ spec, world_size, rank, device }: StartMessage): number {
  if (device === 'cpu') return 0;
  return estimateRank(spec, world_size, rank, { device, threads: 1, instruction_set: 'generic' }).total;
}

function backendOf({ world_size, device }: StartMessage): TrainerConfig['comm']['backend'] {
  if (world_size === 1) return 'solo';
  return device === 'cuda' ? 'nccl' : 'gloo';
}

/** Neutral values of the fields that an objective's type does not have. */
const UNUSED_PREFERENCE = {
  label_smoothing: 0,
  gamma: 0,
  desirable_weight: 1,
  undesirable_weight: 1,
  reference: 'none',
} as const;

function preferenceConfig(
  objective: StartMessage['spec']['train']['objective'],
): TrainerConfig['preference'] {
  return objective === undefined ? null : { ...UNUSED_PREFERENCE, ...objective };
}

type OptimizerSpec = StartMessage['spec']['train']['optimizer'];

/** The core needs every field and ignores those that the type does not have; the spec omits these. */
const UNUSED_OPTIMIZER = {
  eps: 0,
  momentum: 0,
  dampening: 0,
  nesterov: false,
  lr_decay: 0,
  initial_accumulator_value: 0,
  min_coeff: 0,
  max_coeff: 0,
  bias_correction: 'none',
} as const;
const UNUSED_LOSS_SCALE = {
  initial_scale: 1,
  window: 1,
  hysteresis: 1,
  consecutive_hysteresis: false,
  min_scale: 1,
};

function optimizerConfig(spec: OptimizerSpec): Omit<TrainerConfig['optimizer'], 'ema_decay'> {
  const { betas: [beta1, beta2] = [0, 0], param_groups: _, ...fields } = spec;
  return { ...UNUSED_OPTIMIZER, beta1, beta2, ...fields };
}

/** Converts a group's own rate to a factor of the optimizer's rate, which the schedule changes. */
function paramGroups({ lr: peak, param_groups }: OptimizerSpec): TrainerConfig['param_groups'] {
  return param_groups.map(({ match, lr, weight_decay, frozen = false }) => ({
    match,
    lr_scale: lr == null ? 1 : lr / peak,
    weight_decay: weight_decay ?? null,
    frozen,
  }));
}
