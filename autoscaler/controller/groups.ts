/**
 * Ranks that a pool lacks because no group is large enough. All ranks of a job compute the same bits, so they run on
 * workers with equal numerics, a group. The group of a machine is known once its agent has registered.
 */
import type { JobDemand, WorkerView } from './types.js';

/** Machines of one type whose agents have not registered: starting, requested, or possible ones. */
export interface Growth {
  ranks: number;
  /**
   * Group that they will belong to; undefined before the first machine of the type, which may then belong to
   * any group.
   */
  numerics: WorkerView['numerics'] | undefined;
}

/**
 * Returns the ranks that the pool should have so that each waiting job finds its minimum in one group, or 0
 * if no group is too small. Of the groups that can become large enough, the one with the most free ranks
 * grows; free ranks of other groups that are too small count for nothing. Returns 0 as well if no group can
 * become large enough or the result would exceed `most`. Otherwise machines would be launched and retired in
 * a loop without helping a job.
 * @param jobs jobs that the pool has ranks for
 */
export function ranksForGroups(
  jobs: readonly JobDemand[],
  workers: readonly WorkerView[],
  growth: readonly Growth[],
  most: number,
): number {
  const groups = groupsOf(workers, growth);
  const heldSlots = jobs.reduce((sum, job) => sum + job.held, 0);
  const sizes = jobs.map(({ held: has, need }) => {
    const [target] = groups.filter(({ free, more }) => free + more >= need);
    if (has > 0 || !target) return 0;
    const useless = groups.reduce(
      (sum, group) => sum + (group !== target && group.free < need ? group.free : 0),
      0,
    );
    return useless === 0 ? 0 : heldSlots + need + useless;
  });
  return Math.max(0, ...sizes.filter((size) => size <= most));
}

interface Group {
  /** Ranks that are free now. */
  free: number;
  /** Ranks that may be added. */
  more: number;
}

/** Sorts groups by free ranks, descending. The last is a possible group of machine types not seen yet. */
function groupsOf(workers: readonly WorkerView[], growth: readonly Growth[]): Group[] {
  const free = new Map<Growth['numerics'], number>();
  for (const { numerics } of growth) free.set(numerics, 0);
  for (const { numerics, free: ranks } of workers) free.set(numerics, (free.get(numerics) ?? 0) + ranks);
  free.set(undefined, 0);
  const moreFor = (group: Growth['numerics']) =>
    growth.reduce(
      (sum, { numerics, ranks }) => sum + (numerics === undefined || numerics === group ? ranks : 0),
      0,
    );
  return [...free]
    .map(([numerics, ranks]) => ({ free: ranks, more: moreFor(numerics) }))
    .sort((a, b) => b.free - a.free);
}
