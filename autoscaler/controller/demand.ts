/**
 * How many ranks a pool should have machines for.
 *
 * The jobs are gone through by priority, running ones before waiting ones, those that wait in the order of their turns. First each
 * gets the fewest ranks that it can run on, or none: a gang that does not fit now is no reason for machines that would wait for it.
 * Then what is left goes to those that would run on more. A running job that gets nothing here loses nothing: its machine is not
 * taken as long as it holds a lease, and the pool itself decides whom it asks for room.
 */
import type { JobDemand, RefusedReason } from './types.js';

export interface DemandLimits {
  /** Ranks that there can be machines for at present. */
  ranks: number;
  /** Ranks that there could ever be machines for. */
  most_ranks: number;
  /** Most ranks of projects. */
  quotas: Readonly<Record<string, number>>;
}

export interface Demand {
  ranks: number;
  /** Jobs that get some. */
  admitted: JobDemand[];
  refused: Record<RefusedReason, number>;
}

export function demandOf(jobs: readonly JobDemand[], { ranks, most_ranks, quotas }: DemandLimits): Demand {
  const refused: Demand['refused'] = { too_large: 0, quota: 0, capacity: 0 };
  const used = new Map<string, number>();
  const roomOf = ({ project }: JobDemand) =>
    (quotas[project] ?? Number.POSITIVE_INFINITY) - (used.get(project) ?? 0);
  let left = ranks;
  const grant = (job: JobDemand, more: number) => {
    left -= more;
    used.set(job.project, (used.get(job.project) ?? 0) + more);
  };
  const admitted: JobDemand[] = [];
  for (const job of inOrder(jobs)) {
    const reason = whyNot(job, left, most_ranks, roomOf(job));
    if (reason) {
      refused[reason] += 1;
    } else {
      grant(job, job.need);
      admitted.push(job);
    }
  }
  for (const job of admitted) {
    const most = Math.min(job.want - job.need, left, Math.max(0, roomOf(job)));
    // What it has it keeps, whatever became of its project's quota.
    const more = Math.max(most - ((job.need + most) % job.multiple), Math.min(job.held - job.need, left), 0);
    grant(job, more);
  }
  return { ranks: ranks - left, admitted, refused };
}

function inOrder(jobs: readonly JobDemand[]): JobDemand[] {
  const waits = ({ held }: JobDemand) => (held === 0 ? 1 : 0);
  return [...jobs].sort((a, b) => b.priority - a.priority || waits(a) - waits(b));
}

function whyNot(
  { need, held }: JobDemand,
  left: number,
  most_ranks: number,
  room: number,
): RefusedReason | null {
  if (need > most_ranks) return 'too_large';
  if (need > left) return 'capacity';
  return held === 0 && need > room ? 'quota' : null;
}
