/** Memory of a job's ranks, computed from its document alone, without allocations or workers. */
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { leafCount } from '../model/leaves.js';
import { type ModelMemory, modelMemory } from './model-memory.js';
import type { Machine } from './sizes.js';
import { offloadedBytes, ranksToCompare, type ZeroMemory, zeroMemory } from './zero-memory.js';

/** Bytes of one rank, by part. */
export type RankMemory = ZeroMemory &
  ModelMemory & {
    /** Sum of the parts above on the device of the rank. */
    total: number;
    /** Additional bytes in host memory, with `offload` on a GPU. */
    host: number;
  };

interface WorldEstimate {
  world_size: number;
  /**
   * Bytes of the rank that needs the most. Ranks differ by a block of 4096 elements at most, in each bucket
   * in transfer.
   */
  bytes: RankMemory;
}

/** Maximum length of a list without `world_sizes`. */
const MAX_WORLD_SIZES = 64;

/** Returns the bytes of one rank of a world. */
export function estimateRank(
  spec: ResolvedJobSpec,
  worldSize: number,
  rank: number,
  machine: Machine,
): RankMemory {
  return rankMemory(spec, { worldSize, rank }, machine, modelMemory(spec, machine));
}

/** Returns the memory of each world size. A large model with many world sizes takes tens of milliseconds. */
export function estimateWorlds(
  spec: ResolvedJobSpec,
  worldSizes: readonly number[],
  machine: Machine,
): WorldEstimate[] {
  const model = modelMemory(spec, machine);
  const compared = ranksToCompare(spec);
  return worldSizes.map((worldSize) => {
    const ranks = compared.map((rank) => rankMemory(spec, { worldSize, rank }, machine, model));
    const bytes = ranks.reduce((most, next) => (next.total > most.total ? next : most));
    return { world_size: worldSize, bytes };
  });
}

/** Returns the maximum of ranks that the job's arithmetic allows, regardless of its `resources`. */
export function maxWorldSize({ zero, train }: ResolvedJobSpec): number {
  return zero.stage === 1 ? (zero.lanes ?? 1) : leafCount(train);
}

/**
 * Returns the world sizes that a job may run on; of very many, the ends, the preferred one and the powers of
 * two.
 */
export function feasibleWorldSizes({ resources: { ranks }, zero }: ResolvedJobSpec): number[] {
  const step = zero.expert_parallel_size;
  const all = Array.from(
    { length: Math.floor((ranks.max - ranks.min) / step) + 1 },
    (_, index) => ranks.min + index * step,
  );
  if (all.length <= MAX_WORLD_SIZES) return all;
  const isPowerOfTwo = (size: number) => Number.isInteger(Math.log2(size));
  return all.filter(
    (size) => size === ranks.min || size === ranks.max || size === ranks.preferred || isPowerOfTwo(size),
  );
}

function rankMemory(
  spec: ResolvedJobSpec,
  { worldSize, rank }: { worldSize: number; rank: number },
  { device }: Machine,
  model: ModelMemory,
): RankMemory {
  const parts = { ...zeroMemory(spec, worldSize, rank, device), ...model };
  return {
    ...parts,
    total: Object.values(parts).reduce((sum, bytes) => sum + bytes, 0),
    host: device === 'cuda' ? offloadedBytes(spec, worldSize, rank) : 0,
  };
}
