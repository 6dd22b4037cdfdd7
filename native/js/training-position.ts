/** All that the loss scaler remembers. */
interface LossScalerState {
  scale: number;
  /** Steps that it has seen. */
  iteration: number;
  /** -1 before the first overflow. */
  last_overflow_iteration: number;
  /** Overflows left until the scale is halved. */
  hysteresis: number;
  skipped_in_a_row: number;
}

/** Progress of a training, apart from its tensors; equal on all ranks. */
export interface TrainingPosition {
  /** Steps done: those that changed the parameters and those that were skipped. */
  step: number;
  optimizer_steps: number;
  skipped_steps: number;
  loss_scaler: LossScalerState;
}

/**
 * Parts of a loaded state that are restored. `full`: all of it. `weights`: the master; optimizer, counters
 * and loss scaler start afresh. `weights_16bit`: all of it, with the master rounded to the precision that the
 * model computes in.
 */
export type Restore = 'full' | 'weights' | 'weights_16bit';

export type MemoryPart =
  | 'params'
  /** Frozen parameters of which the CPU ranks of a host have one copy. */
  | 'shared_params'
  | 'grad_shard'
  | 'master'
  | 'moments'
  | 'lane_accumulator'
  /** Buckets and pieces in transit. */
  | 'staging'
  /** Includes the model's work space. */
  | 'activations'
  /** Copies of the weights in the order in which products read them. */
  | 'packed_weights';

/** Bytes that a rank has allocated, by purpose. */
export type RankMemory = Record<MemoryPart, number> & {
  /** GPU only: peak memory of kernels, libraries and exchange beside the other parts. */
  workspace?: number;
};
