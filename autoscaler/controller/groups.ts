/**
 * What a pool lacks although it has ranks enough: the ranks of one job compute the same bits, so they lie on workers of one group, those
 * with equal numerics. Which group a machine will belong to is known when its agent is.
 */
import type { JobDemand, WorkerView } from './types.js';

/**
 * Ranks that the pool should have so that each waiting job finds its fewest in one group; 0 where no group is too small. Free ranks of groups
 * that are too small count for nothing, and the group that has the most is filled up. What would be more than `most` is not begun.
 * @param jobs those that the pool has ranks for
 */
export function ranksForGroups(
  jobs: readonly JobDemand[],
  workers: readonly WorkerView[],
  most: number,
): number {
  const free = [...freeByGroup(workers).values()].sort((a, b) => b - a).slice(1);
  const held = jobs.reduce((sum, job) => sum + job.held, 0);
  const sizes = jobs.map(({ held: has, need }) => {
    const useless = has > 0 ? 0 : free.reduce((sum, ranks) => sum + (ranks < need ? ranks : 0), 0);
    return useless === 0 ? 0 : held + need + useless;
  });
  return Math.max(0, ...sizes.filter((size) => size <= most));
}

function freeByGroup(workers: readonly WorkerView[]): Map<string | null, number> {
  const groups = new Map<string | null, number>();
  for (const { numerics, free } of workers) groups.set(numerics, (groups.get(numerics) ?? 0) + free);
  return groups;
}
