import { leastRanks } from './demand.js';
import { countRanks } from './order.js';
import { Slots } from './slots.js';
import type { Placement, RunningJob, Snapshot } from './types.js';

/**
 * Adjusts the placements of a running job before its next generation of ranks. The job shrinks on a
 * preemption request or a lower demand; placements on workers that are gone or draining are replaced within
 * its group. While other jobs wait for the group it gets no more than its minimum. A job that moves gets the
 * placements that are reserved for it, if it has the same leader there and all their workers are schedulable.
 * @returns all its placements, the leader's first; null if the job cannot get its minimum, must be released
 * (also for a move to another leader), or holds no slots
 */
export function adjust(snapshot: Snapshot, jobId: string): Placement[] | null {
  const job = snapshot.running.find(({ id }) => id === jobId);
  const leader = job?.placements[0];
  if (!job || !leader) return null;
  const usable = new Set(snapshot.workers.flatMap(({ id, schedulable }) => (schedulable ? [id] : [])));
  if (job.move?.every(({ worker_id }) => usable.has(worker_id)))
    return job.move[0]?.worker_id === leader.worker_id ? [...job.move] : null;
  const slots = new Slots(snapshot.workers, snapshot.running);
  const group = slots.groupOf(job.placements);
  const { demand, request } = job;
  const most = Math.min(demand.want, request?.ranks ?? demand.want);
  const kept = trimmed(stayingOf(job, usable), most - (most % demand.multiple), demand.multiple);
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

/**
 * Returns the leader's placement, which stays even while its worker drains, and those on schedulable workers.
 */
function stayingOf({ placements }: RunningJob, usable: ReadonlySet<string>): Placement[] {
  return placements.filter(({ worker_id }, i) => i === 0 || usable.has(worker_id));
}

/** Limits placements to `most` ranks in whole expert sets; the last placements are dropped first. */
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
