/**
 * What a pool lacks although it has ranks enough: the ranks of one job compute the same bits, so they lie on workers of one group, those
 * with equal numerics. Which group a machine will belong to is known when its agent is.
 */
import type { JobDemand, WorkerView } from './types.js';

/** Machines of one type whose agents are not there yet: those that start, were asked for, or could be added. */
export interface Growth {
  ranks: number;
  /** The group that they will belong to; undefined where no machine of the type was seen yet, which may then belong to any. */
  numerics: WorkerView['numerics'] | undefined;
}

/**
 * Ranks that the pool should have so that each waiting job finds its fewest in one group; 0 where no group is too small. Of the groups that can
 * become large enough, the one with the most free ranks is filled up, and free ranks of others that are too small count for nothing.
 * Where none can, or it would be more than `most`, nothing is begun: machines would come, help nobody and go, again and again.
 * @param jobs those that the pool has ranks for
 */
export function ranksForGroups(
  jobs: readonly JobDemand[],
  workers: readonly WorkerView[],
  growth: readonly Growth[],
  most: number,
): number {
  const groups = groupsOf(workers, growth);
  const held = jobs.reduce((sum, job) => sum + job.held, 0);
  const sizes = jobs.map(({ held: has, need }) => {
    const [target] = groups.filter(({ free, more }) => free + more >= need);
    if (has > 0 || !target) return 0;
    const useless = groups.reduce(
      (sum, group) => sum + (group !== target && group.free < need ? group.free : 0),
      0,
    );
    return useless === 0 ? 0 : held + need + useless;
  });
  return Math.max(0, ...sizes.filter((size) => size <= most));
}

interface Group {
  /** Ranks that are free now. */
  free: number;
  /** Ranks that may come. */
  more: number;
}

/** The most free ranks first; last a group that may come with machines of a type that was not seen yet. */
function groupsOf(workers: readonly WorkerView[], growth: readonly Growth[]): Group[] {
  const free = new Map<Growth['numerics'], number>();
  for (const { numerics } of growth) if (numerics !== undefined) free.set(numerics, 0);
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
