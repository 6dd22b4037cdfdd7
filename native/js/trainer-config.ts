import type { Architecture } from '../../contracts/architecture.js';
import { DEFAULTS, DEFAULTS_BY_TYPE } from '../../contracts/generated/job-defaults.js';
import type { Precision, ResolvedJobSpec, ResolvedParamGroup } from '../../contracts/index.js';

type Train = ResolvedJobSpec['train'];

/** Fields that the type of the optimizer does not have are absent. */
export type OptimizerConfig = Omit<Train['optimizer'], 'betas' | 'param_groups'> & {
  beta1?: number;
  beta2?: number;
};

type ParamGroupConfig = Omit<ResolvedParamGroup, 'lr'> & {
  /** Times the learning rate of the step. */
  lr_scale: number;
};

/** Sections and fields of `train` that the core does not read, or reads in another form. */
type OtherFields =
  | 'epochs'
  | 'steps'
  | 'optimizer'
  | 'evaluation'
  | 'early_stopping'
  | 'adapter'
  | 'objective'
  | 'session';

/**
 * Training configuration of a rank: the fields of a resolved job document, and those of the rank. All but rank, world
 * size, threads and paths is the same on every rank. The field tables in native/train/trainer_config.h and the headers
 * that it includes read it.
 */
export interface TrainerConfig extends Omit<Train, OtherFields> {
  model: Architecture;
  /** Device of parameters, activations and, unless offloaded, states. */
  device: DeviceKind;
  /**
   * GPU memory taken before anything else: a job that does not fit fails immediately, and no step waits for
   * memory; 0 on a CPU.
   */
  reserved_bytes: number;
  rank: number;
  world_size: number;
  threads: number;
  /**
   * Null: the mean loss of all targets. Otherwise batch sizes count units: pairs of sequences, or in `kto` sequences.
   */
  preference: NonNullable<Train['objective']> | null;
  /**
   * True: a training session. Its steps come from forwardBackward() and optimStep(), and there are no files. A pass has
   * at most global_batch_size rows.
   */
  session: boolean;
  /** Total steps of the job: the end of the learning-rate schedule. */
  steps: number;
  data_seed: number;
  optimizer: OptimizerConfig;
  param_groups: ParamGroupConfig[];
  zero: ResolvedJobSpec['zero'];
  /** Training tokens, in the format of native/data/token_file.h, and the share of each file as an integer. */
  training_files: { path: string; weight: number }[];
  /** Paths of the tokens of each evaluation, in the same format. */
  evaluation_files: string[][];
  /**
   * `solo` is for one rank, `gloo` for ranks on CPUs, `nccl` for ranks on GPUs. `bind_address` is the address of this
   * host at which the other ranks reach it (`gloo`).
   */
  comm: { backend: 'solo' | 'gloo' | 'nccl'; bind_address: string; timeout_ms: number };
}

/** What decides an update, the averages included. */
export type UpdateConfig = Pick<
  TrainerConfig,
  'optimizer' | 'ema' | 'gradient_clipping' | 'gradient_clipping_norm' | 'loss_scale'
>;

/** Fields that plainSettings() leaves to its caller. */
type OwnFields =
  | 'model'
  | 'device'
  | 'reserved_bytes'
  | 'rank'
  | 'world_size'
  | 'threads'
  | 'micro_batch_size'
  | 'steps'
  | 'training_files'
  | 'evaluation_files'
  | 'comm';

/** The defaults of a job document with AdamW at a constant rate, ZeRO stage 2: a start for benchmarks and tests. */
export function plainSettings(precision: Precision): Omit<TrainerConfig, OwnFields> {
  const { TrainSpec, DataSpec, OptimizerSpec, LrScheduleSpec, LossScaleSpec, ZeroSpec } =
    structuredClone(DEFAULTS);
  const { param_groups, ...optimizer } = OptimizerSpec;
  const { betas, ...adamw } = DEFAULTS_BY_TYPE.OptimizerSpec.adamw;
  const lossScale = precision === 'fp16' ? 'dynamic' : 'none';
  return {
    ...TrainSpec,
    precision,
    preference: null,
    session: false,
    data_seed: DataSpec.seed,
    optimizer: { ...optimizer, ...adamw, beta1: betas[0], beta2: betas[1] },
    param_groups,
    lr_schedule: { ...LrScheduleSpec, type: 'constant' },
    loss_scale: { ...LossScaleSpec, ...DEFAULTS_BY_TYPE.LossScaleSpec[lossScale], type: lossScale },
    zero: { ...ZeroSpec, bucket_bytes: 16 << 20, reduce_dtype: precision },
  };
}

/** Device that a rank computes on: the CPU, or the first CUDA device that its process sees (CUDA_VISIBLE_DEVICES). */
export type DeviceKind = 'cpu' | 'cuda';
