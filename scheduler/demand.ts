/** Numbers of ranks that GPU memory allows for a job: a rank needs less memory the more ranks there are. */
import type { Demand, SchedulerWorker } from './types.js';

/** Numbers of ranks with the same memory per rank. */
interface RankRange {
  least: number;
  most: number;
  bytes: number;
}

/**
 * Returns the ranges of a demand, most ranks first. Fewer ranks than the first memory step need as much as
 * that step.
 */
export function rangesOf({ need, want, memory }: Demand): RankRange[] {
  const steps = memory.length > 0 ? memory : [{ ranks: 0, bytes: 0 }];
  const ranges = steps.map(({ ranks, bytes }, index) => ({
    least: Math.max(1, need, index === 0 ? 0 : ranks),
    most: Math.min(want, (steps[index + 1]?.ranks ?? Number.POSITIVE_INFINITY) - 1),
    bytes,
  }));
  return ranges.filter(({ least, most }) => least <= most).reverse();
}

/** Returns the ranks of a range that fit into the available slots; 0 if they are below the minimum. */
export function ranksIn({ multiple }: Demand, { least, most }: RankRange, available: number): number {
  const ranks = Math.min(most, available);
  const whole = ranks - (ranks % multiple);
  return whole >= least ? whole : 0;
}

/** Returns the minimum of ranks with the given memory per rank; infinity if no number of ranks fits. */
export function leastRanks(demand: Demand, bytes: number): number {
  const least = rangesOf(demand)
    .filter((range) => range.bytes <= bytes)
    .map((range) => wholeSets(demand, range.least));
  return Math.min(Number.POSITIVE_INFINITY, ...least);
}

/**
 * Returns the minimum of ranks on the workers of a pool, over their GPU sizes. Returns the job's own minimum
 * if the job fits on none of them or the pool has no workers.
 */
export function neededRanks(demand: Demand, workers: readonly Pick<SchedulerWorker, 'gpu_bytes'>[]): number {
  const kinds = new Set(workers.map(({ gpu_bytes }) => gpu_bytes ?? Number.POSITIVE_INFINITY));
  const least = Math.min(...[...kinds].map((bytes) => leastRanks(demand, bytes)));
  return Number.isFinite(least) ? least : demand.need;
}

/** Rounds ranks up to whole expert sets. */
export function wholeSets({ multiple }: Demand, ranks: number): number {
  return Math.ceil(ranks / multiple) * multiple;
}
