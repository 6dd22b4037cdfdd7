/**
 * Number of ranks that a pool should have machines for.
 *
 * Jobs are ordered by priority, running ones before waiting ones, waiting ones by queue position. First each
 * job gets its minimum of ranks, or none: a gang that does not fit now justifies no machines that would wait
 * for it. Then the remainder goes to jobs that can grow. A running job that gets nothing here loses nothing. Its
 * machine is not retired while the job holds a lease, and the scheduler of the pool decides on preemption.
 */
import type { JobDemand, WaitReason } from './types.js';

export interface DemandLimits {
  /** Ranks that machines can provide at present, could without the budget, and if launches did not fail. */
  ranks: number;
  unbudgeted: number;
  unpaused: number;
  /** Ranks that machines could ever provide. */
  max_ranks: number;
  /** Maximum of ranks by project. */
  quotas: Readonly<Record<string, number>>;
  /** Waiting jobs that get no machines now. */
  paused: ReadonlySet<string>;
}

export interface Demand {
  ranks: number;
  /** Jobs that are granted ranks. */
  admitted: JobDemand[];
  /** Waiting jobs that are not, by id. */
  refused: Map<string, WaitReason>;
}

export function demandOf(jobs: readonly JobDemand[], limits: DemandLimits): Demand {
  const { ranks, quotas } = limits;
  const refused: Demand['refused'] = new Map();
  const used = new Map<string, number>();
  const quotaLeft = ({ project }: JobDemand) =>
    (quotas[project] ?? Number.POSITIVE_INFINITY) - (used.get(project) ?? 0);
  let left = ranks;
  const grant = (job: JobDemand, more: number) => {
    left -= more;
    used.set(job.project, (used.get(job.project) ?? 0) + more);
  };
  const admitted: JobDemand[] = [];
  for (const job of byPriority(jobs)) {
    const reason = refusalReason(job, limits, left, quotaLeft(job));
    if (reason) {
      if (job.held === 0) refused.set(job.id, reason);
    } else {
      grant(job, job.need);
      admitted.push(job);
    }
  }
  for (const job of admitted) {
    const most = Math.min(job.want - job.need, left, Math.max(0, quotaLeft(job)));
    // A job keeps the ranks that it holds, even beyond the quota of its project.
    const more = Math.max(most - ((job.need + most) % job.multiple), Math.min(job.held - job.need, left), 0);
    grant(job, more);
  }
  return { ranks: ranks - left, admitted, refused };
}

function byPriority(jobs: readonly JobDemand[]): JobDemand[] {
  const waits = ({ held }: JobDemand) => (held === 0 ? 1 : 0);
  return [...jobs].sort((a, b) => b.priority - a.priority || waits(a) - waits(b));
}

/** @param left ranks that are left for it @param room ranks that are left of its project's quota */
function refusalReason(
  { id, need, held }: JobDemand,
  { ranks, unbudgeted, unpaused, max_ranks, paused }: DemandLimits,
  left: number,
  room: number,
): WaitReason | null {
  if (need > max_ranks) return 'too_large';
  if (paused.has(id)) return 'gang';
  if (need > left) {
    if (need > left + unpaused - ranks) return 'capacity';
    return need > left + unbudgeted - ranks ? 'launch_failed' : 'budget';
  }
  return held === 0 && need > room ? 'quota' : null;
}
