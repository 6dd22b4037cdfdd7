/** How many ranks a job may have where the memory of GPUs limits them: on a GPU a rank needs the less the more ranks there are. */
import type { Demand, SchedulerWorker } from './types.js';

/** Numbers of ranks for which each rank needs so many bytes. */
export interface RankRange {
  least: number;
  most: number;
  bytes: number;
}

/** The ranges that a demand allows, most ranks first. Fewer ranks than the first step of its list names need what that one needs. */
export function rangesOf({ need, want, memory }: Demand): RankRange[] {
  const steps = memory.length > 0 ? memory : [{ ranks: 0, bytes: 0 }];
  const ranges = steps.map(({ ranks, bytes }, index) => ({
    least: Math.max(1, need, index === 0 ? 0 : ranks),
    most: Math.min(want, (steps[index + 1]?.ranks ?? Number.POSITIVE_INFINITY) - 1),
    bytes,
  }));
  return ranges.filter(({ least, most }) => least <= most).reverse();
}

/** Ranks of a range that a job gets where so many slots are available; 0 when that is fewer than it needs. */
export function ranksIn({ multiple }: Demand, { least, most }: RankRange, available: number): number {
  const ranks = Math.min(most, available);
  const whole = ranks - (ranks % multiple);
  return whole >= least ? whole : 0;
}

/** The fewest ranks that a job can have where each has so many bytes; infinitely many where it can't have any. */
export function leastRanks(demand: Demand, bytes: number): number {
  const least = rangesOf(demand)
    .filter((range) => range.bytes <= bytes)
    .map((range) => wholeSets(demand, range.least));
  return Math.min(Number.POSITIVE_INFINITY, ...least);
}

/**
 * The fewest ranks that a job can have on workers of a pool: where it needs the fewest. One that fits on none of them, or has none yet,
 * asks for what its document says.
 */
export function neededRanks(demand: Demand, workers: readonly Pick<SchedulerWorker, 'gpu_bytes'>[]): number {
  const kinds = new Set(workers.map(({ gpu_bytes }) => gpu_bytes ?? Number.POSITIVE_INFINITY));
  const least = Math.min(...[...kinds].map((bytes) => leastRanks(demand, bytes)));
  return Number.isFinite(least) ? least : demand.need;
}

/** The least multiple that is at least so many ranks. */
export function wholeSets({ multiple }: Demand, ranks: number): number {
  return Math.ceil(ranks / multiple) * multiple;
}
