/** Which running jobs make room for a waiting one. */
import { leastRanks, rangesOf, wholeSets } from './demand.js';
import { type Candidate, countRanks } from './order.js';
import type { Group, Slots } from './slots.js';
import type { Decision, RunningJob } from './types.js';

/** Requests to jobs of one group, and how many ranks they are about. */
export interface Room {
  group: Group;
  requests: Decision['requests'];
  ranks: number;
}

/**
 * Finds room for a job that does not fit, whose turn it is. Jobs that began with fewer points than it has may be asked: first to
 * give what they have above their minimum, the one with the fewest points first; when that is not enough, those of lower priority to
 * leave.
 * @returns no more requests than are needed, in the group where it takes the fewest ranks; null when it would not be enough
 */
export function requestRoom(
  { job, groups }: Candidate,
  points: number,
  slots: Slots,
  running: readonly RunningJob[],
): Room | null {
  const askable = running
    .filter((holder) => holder.request === null && holder.granted_priority < points)
    .sort((a, b) => a.granted_priority - b.granted_priority || (a.id < b.id ? 1 : -1));
  let best: Room | null = null;
  for (const group of groups) {
    const holders = askable.filter(({ placements }) => slots.groupOf(placements) === group);
    for (const { least, bytes } of rangesOf(job.demand)) {
      const large = holders.filter(({ placements }) => slots.memoryOf(placements) >= bytes);
      const missing = wholeSets(job.demand, least) - slots.freeIn(group, bytes);
      const left = roomAmong(large, missing, job.priority, slots);
      if (!left) continue;
      const ranks = [...left].reduce((sum, [holder, to]) => sum + countRanks(holder.placements) - to, 0);
      const requests = [...left].map(([{ id }, to]) => ({ job_id: id, request: { ranks: to, for: job.id } }));
      if (!best || ranks < best.ranks) best = { group, requests, ranks };
    }
  }
  return best;
}

/** The ranks that each holder is left with, of those that give some; null when all of them have too few. */
function roomAmong(
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
