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
  /** Includes the model's work space, and in a session the largest sample so far. */
  | 'activations'
  /** Copies of the weights in the order in which products read them. */
  | 'packed_weights';

/** Bytes that a rank has allocated, by purpose. */
export type RankMemory = Record<MemoryPart, number> & {
  /** GPU only: peak memory of kernels, libraries and exchange beside the other parts. */
  workspace?: number;
};
