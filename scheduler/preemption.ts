/** Selection of running jobs to preempt for a waiting one. */
import { leastRanks, rangesOf, wholeSets } from './demand.js';
import { type Candidate, countRanks } from './order.js';
import type { Group, Slots } from './slots.js';
import type { Decision, RunningJob } from './types.js';

/** Preemption requests in one group, and the number of ranks that they release. */
interface Preemptions {
  group: Group;
  requests: Decision['requests'];
  ranks: number;
}

/**
 * Selects preemptions for the first waiting job that does not fit. Candidates are jobs whose granted priority
 * is below the points of the waiting job. First they shrink to their minimum, the lowest granted priority
 * first. If that is not enough, candidates of lower priority are released.
 * @returns the fewest requests needed, in the group that loses the fewest ranks; null if preemption cannot
 * provide enough
 */
export function selectPreemptions(
  { job, groups }: Candidate,
  points: number,
  slots: Slots,
  running: readonly RunningJob[],
): Preemptions | null {
  const preemptible = running
    .filter((holder) => !holder.request && !holder.move && holder.granted_priority < points)
    .sort((a, b) => a.granted_priority - b.granted_priority || (a.id < b.id ? 1 : -1));
  let best: Preemptions | null = null;
  for (const group of groups) {
    const holders = preemptible.filter(({ placements }) => slots.groupOf(placements) === group);
    for (const { least, bytes } of rangesOf(job.demand)) {
      const large = holders.filter(({ placements }) => slots.memoryOf(placements) >= bytes);
      const missing = wholeSets(job.demand, least) - slots.freeIn(group, bytes);
      const left = remainingRanks(large, missing, job.priority, slots);
      if (!left) continue;
      const ranks = [...left].reduce((sum, [holder, to]) => sum + countRanks(holder.placements) - to, 0);
      const requests = [...left].map(([{ id }, to]) => ({ job_id: id, request: { ranks: to, for: job.id } }));
      if (!best || ranks < best.ranks) best = { group, requests, ranks };
    }
  }
  return best;
}

/** Returns the remaining ranks of each preempted job; null if preemption cannot provide enough. */
function remainingRanks(
  holders: readonly RunningJob[],
  missing: number,
  priority: number,
  slots: Slots,
): Map<RunningJob, number> | null {
  const left = new Map<RunningJob, number>();
  let open = missing;
  for (const holder of holders) {
    const ranks = countRanks(holder.placements);
    const spare = Math.max(0, ranks - leastRanks(holder.demand, slots.memoryOf(holder.placements)));
    const { multiple } = holder.demand;
    const give = Math.min(spare - (spare % multiple), wholeSets(holder.demand, Math.max(0, open)));
    if (give > 0) left.set(holder, ranks - give);
    open -= give;
  }
  for (const holder of holders) {
    if (open > 0 && holder.priority < priority) {
      open -= left.get(holder) ?? countRanks(holder.placements);
      left.set(holder, 0);
    }
  }
  return open <= 0 ? left : null;
}
