import type { ResolvedJobSpec } from '../../contracts/index.js';
import { sequencesOfUnit } from '../objective.js';

/** Returns the leaves of one step: micro-batches of the global batch, and the maximum of ranks of a job. */
export function leafCount(train: { global_batch_size: number; micro_batch_size: number }): number {
  return Math.floor(train.global_batch_size / train.micro_batch_size);
}

/** Returns the number of sequences of a leaf. */
export function leafSequences(train: ResolvedJobSpec['train']): number {
  return train.micro_batch_size * sequencesOfUnit(train);
}

/** Returns the number of tokens of the sequences of a step, including tokens that are not targets. */
export function tokensPerStep(train: ResolvedJobSpec['train']): number {
  return train.global_batch_size * sequencesOfUnit(train) * train.sequence_length;
}

/** Returns whether a rank accumulates the gradients of several leaves before it sends them. */
export function addsLeaves({ train, zero }: Pick<ResolvedJobSpec, 'train' | 'zero'>): boolean {
  return zero.stage === 1 && (zero.lanes ?? 1) < leafCount(train);
}

/** Returns the largest divisor of `of` up to `atMost`. */
export function largestDivisor(value: number, atMost: number): number {
  for (let divisor = Math.min(value, atMost); divisor > 1; divisor -= 1) {
    if (value % divisor === 0) return divisor;
  }
  return 1;
}
