/** What ranks and agents say of the state of a training: its parameters, its stored bytes, its position. */

/**
 * What an optimizer keeps of a parameter, all of it fp32; `master` is the parameter itself. Which of them there are depends
 * on the optimizer; a frozen parameter has `master` alone.
 */
export type StateName = 'master' | 'exp_avg' | 'exp_avg_sq' | 'momentum_buffer' | 'sum';

/** What an optimizer keeps besides the parameter itself. */
export type Moment = Exclude<StateName, 'master'>;

export interface ParamRecord {
  name: string;
  shape: number[];
  numel: number;
  group: string;
  /** It is not trained. */
  frozen: boolean;
}

/** CRC32C of bytes [begin, end) of one shard, as this rank read them; never across a checksum chunk's border. */
export interface RangeChecksum {
  file: string;
  begin: number;
  end: number;
  /** 8 hexadecimal digits. */
  crc32c: string;
}

export interface TensorRecord {
  state: StateName;
  param: string;
  element_begin: number;
  element_end: number;
  byte_begin: number;
  byte_end: number;
}

/** A shard that is stored whole. */
export interface ShardRecord {
  file: string;
  bytes: number;
  sha256: string;
  crc32c: string[];
  tensors: TensorRecord[];
}

/** All that the loss scaler remembers. */
export interface LossScalerState {
  scale: number;
  /** Steps that it has seen. */
  iteration: number;
  /** -1 before the first overflow. */
  last_overflow_iteration: number;
  /** Overflows left until the scale is lowered. */
  hysteresis: number;
  skipped_in_a_row: number;
}

/** Where a training is, apart from its tensors; equal on all ranks. */
export interface TrainingPosition {
  /** Steps done: those that changed the parameters and those that were skipped. */
  step: number;
  optimizer_steps: number;
  skipped_steps: number;
  loss_scaler: LossScalerState;
}
