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
  /** Number of the set of experts that it belongs to; null: all ranks share it. */
  expert_set: number | null;
}

/** With the parameters and the number of ranks it decides which rank owns what (native/zero/partition/shard_layout). */
export interface Sharding {
  /** Elements of a block. */
  block_elements: number;
  /** Blocks of a bucket. */
  bucket_blocks: number;
  expert_sets: number;
}

/** CRC32C of bytes [begin, end) of one shard, as this rank read them; never across a checksum chunk's border. */
export interface RangeChecksum {
  file: string;
  begin: number;
  end: number;
  /** 8 hexadecimal digits. */
  crc32c: string;
}

/** A shard that is stored whole. */
export interface ShardRecord {
  file: string;
  bytes: number;
  /** Where the header ends. */
  data_begin: number;
  sha256: string;
  /** Eight hexadecimal digits for each of its checksum chunks, one behind the other. */
  crc32c: string;
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
