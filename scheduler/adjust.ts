import { leastRanks } from './demand.js';
import { countRanks } from './order.js';
import { Slots } from './slots.js';
import type { Placement, RunningJob, Snapshot } from './types.js';

/**
 * Fits the slots of a running job to what is wanted of it, before its next generation of ranks: fewer when it was asked for room or wants
 * fewer; those on workers that are gone or drain are replaced by others of its group. While jobs wait for the group it gets no more than
 * it needs.
 * @returns all its placements, the leader's first; null when it can't have as many ranks as it needs, has to leave, or holds no slots
 */
export function adjust(snapshot: Snapshot, jobId: string): Placement[] | null {
  const job = snapshot.running.find(({ id }) => id === jobId);
  const leader = job?.placements[0];
  if (!job || !leader) return null;
  const slots = new Slots(snapshot.workers, snapshot.running);
  const group = slots.groupOf(job.placements);
  const { demand, request } = job;
  const most = Math.min(demand.want, request?.ranks ?? demand.want);
  const kept = trimmed(stayingOf(job, snapshot), most - (most % demand.multiple), demand.multiple);
  const need = leastRanks(demand, slots.memoryOf(kept));
  const isWanted = snapshot.waiting.some(
    ({ demand: other, avoid }) => group !== null && slots.groupsFor(other, avoid).includes(group),
  );
  const target = isWanted || request ? Math.min(need, most) : most;
  const grown = slots.grow({ ...demand, want: target }, kept, job.avoid);
  const placements = grown ?? kept;
  const least = Math.max(need, leastRanks(demand, slots.memoryOf(placements)));
  return countRanks(placements) >= least ? placements : null;
}

/** The leader's, which runs even while its worker drains, and those on workers that stay. */
function stayingOf({ placements }: RunningJob, { workers }: Snapshot): Placement[] {
  const staying = new Set(workers.filter(({ schedulable }) => schedulable).map(({ id }) => id));
  return placements.filter(({ worker_id }, i) => i === 0 || staying.has(worker_id));
}

/** At most so many ranks, whole sets of experts; the last ones go first. */
function trimmed(placements: readonly Placement[], most: number, multiple: number): Placement[] {
  const ranks = countRanks(placements);
  let left = Math.min(most, ranks - (ranks % multiple));
  const kept: Placement[] = [];
  for (const { worker_id, ranks: here } of placements) {
    const ranks = Math.min(here, left);
    left -= ranks;
    if (ranks > 0) kept.push({ worker_id, ranks });
  }
  return kept;
}
