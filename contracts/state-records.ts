/** Training state as reported by ranks and agents: parameters, stored bytes, position. */
import { VALUES } from './generated/job-defaults.js';

/**
 * States that optimizers keep per parameter, all fp32, in the order in which a shard holds them; `master` is the
 * parameter itself. The set depends on the optimizer; a frozen parameter has `master` only, and the base under
 * adapters none.
 */
export const STATE_NAMES = VALUES.TensorState;
export type StateName = (typeof STATE_NAMES)[number];

/** States of the size of weights: the parameter itself, and its average, which no update reads. */
type WeightState = 'master' | 'ema';
/** States that an optimizer's rule reads, besides the parameter itself. */
export type Moment = Exclude<StateName, WeightState>;

export const isMoment = (state: StateName): state is Moment => state !== 'master' && state !== 'ema';

export interface ParamRecord {
  name: string;
  shape: number[];
  numel: number;
  group: string;
  /** True if it is not trained. */
  frozen: boolean;
  /** True if it belongs to the frozen base under adapters, which no checkpoint contains. */
  base: boolean;
  /** Number of its expert set; null: all ranks share it. */
  expert_set: number | null;
}

/**
 * Determines, with the parameters and the number of ranks, which rank owns which block
 * (native/zero/partition/shard_layout).
 */
export interface Sharding {
  /** Elements of a block. */
  block_elements: number;
  /** Blocks of a bucket. */
  bucket_blocks: number;
  expert_sets: number;
}

/** CRC32C of bytes [begin, end) of one shard as read by this rank; never across the border of a checksum chunk. */
export interface RangeChecksum {
  file: string;
  begin: number;
  end: number;
  /** 8 hexadecimal digits. */
  crc32c: string;
}

/** A completely stored shard. */
export interface ShardRecord {
  file: string;
  bytes: number;
  /** End of the header. */
  data_begin: number;
  sha256: string;
  /** Eight hexadecimal digits per checksum chunk, concatenated. */
  crc32c: string;
}

/** State of the loss scaler. */
export interface LossScalerState {
  scale: number;
  /** Number of steps. */
  iteration: number;
  /** -1 before the first overflow. */
  last_overflow_iteration: number;
  /** Overflows left until the scale is lowered. */
  hysteresis: number;
  skipped_in_a_row: number;
}

/**
 * File of a checkpoint with the log-probabilities of its job's initial model, float64, little-endian. The file has
 * those of each sequence of the training file, and of each evaluation file. For `kto`, the log-probabilities of a
 * file's mismatched sequences follow those of the file.
 */
export interface ReferenceRecord {
  bytes: number;
  /** 64 hexadecimal digits. */
  sha256: string;
  /** Type of the objective. */
  objective: string;
}

/** Evaluations as a checkpoint records them; equal on all ranks. */
export interface EvaluationRecord {
  /** Finite losses of the evaluations after the checkpoint's step, by name. */
  eval_losses: Record<string, number>;
  /** State of `train.early_stopping`; null without it. */
  early_stopping: EarlyStoppingState | null;
}

/** Position of a session in its log of calls. */
export interface CallPosition {
  /** The state includes the calls up to this number; later ones are run again after a load. */
  number: number;
  /** Tokens of all passes that its steps have used. */
  tokens: number;
}

/** Everything on which the decision of `train.early_stopping` depends. */
export interface EarlyStoppingState {
  /** Metric of the newest evaluation that improved, and its step; null before the first. */
  best_eval_loss: number | null;
  best_step: number | null;
  evaluations_without_improvement: number;
}

/** Position of a training besides its tensors; equal on all ranks. */
export interface TrainingPosition {
  /** Completed steps: those that changed the parameters and those that were skipped. */
  step: number;
  optimizer_steps: number;
  skipped_steps: number;
  loss_scaler: LossScalerState;
}

/** Parts of a checkpoint that are restored. */
export type Restore = 'full' | 'weights' | 'weights_16bit';

/** Source of the initial state. */
export type LoadSource = CheckpointLoad | ModelLoad;

export interface CheckpointLoad {
  kind: 'checkpoint';
  /** Key of its directory. */
  directory: string;
  /**
   * `full`: continue the training. `weights_16bit`: the same with weights rounded to 16 bits. `weights`: only the
   * weights are loaded, and a new training starts.
   */
  restore: Restore;
  /** True if the job continues its own training: its position must not change then. */
  own: boolean;
}

/** An uploaded model, or adapters over one. */
export interface ModelLoad {
  kind: 'model';
  /** True if the files have no parameters but those of adapters, and the modules trained with them. */
  adapters_only: boolean;
  /** Values besides `weights` include the uploaded optimizer state. */
  restore: Restore;
  /** Key of its folder. */
  directory: string;
}

/**
 * Source of the frozen base under adapters: the initial values of a seed, or the files in a directory of the object
 * store.
 */
export type BaseLoad =
  | { kind: 'seed'; seed: number }
  | {
      kind: 'model' | 'checkpoint';
      /** Key. */
      directory: string;
    };

/** Save that a report belongs to; equal on all ranks. */
export interface SaveRef extends TrainingPosition, EvaluationRecord {
  /** Name of the checkpoint's directory. */
  directory: string;
  reference: ReferenceRecord | null;
  /** Null for a job that is no session. */
  calls: CallPosition | null;
}

/** Duration of one rank's part of a save. */
export interface SaveCost {
  /** Training was stalled, in seconds. */
  stall_seconds: number;
  /** The shard was written, in seconds, retries included. */
  write_seconds: number;
}
