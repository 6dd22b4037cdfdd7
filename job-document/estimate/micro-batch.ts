/** A `micro_batch_size` of `auto`, by the memory of the job's pool. */
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { leafSequences } from '../model/leaves.js';
import { checkRanks } from '../resolve/resources.js';
import { DEFAULT_BATCH, largestMicroBatch } from '../resolve/steps/batch.js';
import { checkZero } from '../resolve/zero.js';
import { estimateRank } from './rank-memory.js';
import type { EstimateDevice } from './sizes.js';

/** Memory that a rank of the job's pool has. */
export interface RankBudget {
  device: EstimateDevice;
  bytes: number;
}

/** Tokens of a micro-batch that are rows enough for products on any device. */
const MAX_TOKENS = 16_384;
const MAX_MICRO_BATCH = 4_096;

/**
 * Resolves a `micro_batch_size` of `auto`. Chooses the largest divisor of the batch with which a rank of
 * `resources.ranks.preferred` fits into the memory, with leaves for four ranks and at most MAX_TOKENS tokens. Chooses
 * the smallest divisor if none fits.
 * @param spec resolved document without errors
 * @param budget null, if no worker of the pool is known: the largest one up to the default
 */
export function fitMicroBatch(spec: ResolvedJobSpec, budget: RankBudget | null): ResolvedJobSpec {
  const { global_batch_size: global, micro_batch_size: least } = spec.train;
  const most = Math.min(largestMicroBatch(global), MAX_MICRO_BATCH);
  for (let size = most; size > least; size -= 1) {
    if (global % size !== 0) continue;
    const candidate = { ...spec, train: { ...spec.train, micro_batch_size: size } };
    if (checkRanks(candidate).length + checkZero(undefined, candidate).length > 0) continue;
    if (fits(candidate, budget)) return candidate;
  }
  return spec;
}

function fits(spec: ResolvedJobSpec, budget: RankBudget | null): boolean {
  const { train, resources } = spec;
  if (budget === null) return train.micro_batch_size <= DEFAULT_BATCH.micro_batch_size;
  if (leafSequences(train) * train.sequence_length > MAX_TOKENS) return false;
  const machine = { device: budget.device, threads: 1, instruction_set: 'generic' } as const;
  // The first rank owns the most.
  return estimateRank(spec, resources.ranks.preferred, 0, machine).total <= budget.bytes;
}
