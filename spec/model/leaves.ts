/** Returns the leaves of one step: micro-batches of the global batch, and the maximum of ranks of a job. */
export function leafCount(train: { global_batch_size: number; micro_batch_size: number }): number {
  return Math.floor(train.global_batch_size / train.micro_batch_size);
}

/** Returns the largest divisor of `of` up to `atMost`. */
export function largestDivisor(of: number, atMost: number): number {
  for (let divisor = Math.min(of, atMost); divisor > 1; divisor -= 1) {
    if (of % divisor === 0) return divisor;
  }
  return 1;
}
