/**
 * Order in which the jobs of a pool get slots.
 *
 * Within a project: most points first, then the job that was queued first. Points are the priority plus one
 * for each minute of waiting. Between projects the first jobs of each are compared. The job with the most
 * points comes first, then the job of the project that uses fewer ranks, then the job that was queued first.
 * Here waiting counts from the last start of a job of the project in a group that could run this one.
 *
 * So projects of equal priority share a pool equally, however many jobs each has. And no job starves: once it
 * is the first of its project, its points grow by the minute, while the waiting time of a served project
 * restarts. After as many minutes as its priority lies below the others', plus one, each other project gets
 * at most one more job before it.
 */
import type { Group } from './slots.js';
import type { Placement, Snapshot, WaitingJob } from './types.js';

const AGEING_MS = 60_000;

/** Waiting job and the groups that could run it. */
export interface Candidate {
  job: WaitingJob;
  groups: readonly Group[];
}

/** Returns the priority plus one point for each whole minute since `since`. */
function pointsSince({ priority }: WaitingJob, since: number, now: number): number {
  return priority + Math.floor(Math.max(0, now - since) / AGEING_MS);
}

/** Usage and last start of each project, updated during a decision. */
export class Shares {
  readonly now: number;
  private readonly used = new Map<string, number>();
  private readonly served: Map<string, Map<string, number>>;

  constructor({ now, running, served_at }: Snapshot) {
    this.now = now;
    this.served = new Map([...served_at].map(([project, groups]) => [project, new Map(groups)]));
    for (const { project, placements } of running) this.use(project, countRanks(placements));
  }

  usedBy(project: string): number {
    return this.used.get(project) ?? 0;
  }

  /** Returns the points of a job compared with jobs of other projects. */
  pointsOf({ job, groups }: Candidate): number {
    const served = this.served.get(job.project);
    const last = groups.map(({ name }) => served?.get(name) ?? Number.NEGATIVE_INFINITY);
    return pointsSince(job, Math.max(job.queued_at, ...last), this.now);
  }

  /** Records the start of a waiting job of the project. */
  serve(project: string, group: Group, ranks: number): void {
    this.use(project, ranks);
    const served = this.served.get(project) ?? new Map<string, number>();
    this.served.set(project, served.set(group.name, this.now));
  }

  private use(project: string, ranks: number): void {
    this.used.set(project, this.usedBy(project) + ranks);
  }
}

export function countRanks(placements: readonly Placement[]): number {
  return placements.reduce((sum, { ranks }) => sum + ranks, 0);
}

/** Waiting jobs of one project, and the points of its first job compared with other projects. */
interface Queue {
  project: string;
  candidates: Candidate[];
  next: number;
  head: Candidate;
  points: number;
}

/**
 * Yields every candidate once, always the first in order among the remaining ones. The usage of a project
 * that the caller serves counts from the next candidate on.
 */
export function* inOrder(candidates: readonly Candidate[], shares: Shares): Generator<Candidate> {
  const queues = queuesOf(candidates, shares);
  while (queues.length > 0) {
    let best = 0;
    for (let i = 1; i < queues.length; i += 1) {
      if (comesBefore(queues[i] as Queue, queues[best] as Queue, shares)) best = i;
    }
    const queue = queues[best] as Queue;
    yield queue.head;
    queue.next += 1;
    const head = queue.candidates[queue.next];
    if (head) Object.assign(queue, { head, points: shares.pointsOf(head) });
    else queues.splice(best, 1);
  }
}

function queuesOf(candidates: readonly Candidate[], shares: Shares): Queue[] {
  const byProject = new Map<string, Candidate[]>();
  for (const candidate of candidates) {
    const { project } = candidate.job;
    const queue = byProject.get(project);
    if (queue) queue.push(candidate);
    else byProject.set(project, [candidate]);
  }
  return [...byProject].map(([project, unsorted]) => {
    const sorted = inProjectOrder(unsorted, shares.now);
    const head = sorted[0] as Candidate;
    return { project, candidates: sorted, next: 0, head, points: shares.pointsOf(head) };
  });
}

function inProjectOrder(candidates: readonly Candidate[], now: number): Candidate[] {
  const points = new Map(candidates.map(({ job }) => [job, pointsSince(job, job.queued_at, now)]));
  const pointsOf = ({ job }: Candidate) => points.get(job) ?? 0;
  return [...candidates].sort((a, b) => pointsOf(b) - pointsOf(a) || byTime(a.job, b.job));
}

function comesBefore(a: Queue, b: Queue, shares: Shares): boolean {
  const order =
    b.points - a.points ||
    shares.usedBy(a.project) - shares.usedBy(b.project) ||
    byTime(a.head.job, b.head.job);
  return order < 0;
}

function byTime(a: WaitingJob, b: WaitingJob): number {
  if (a.queued_at !== b.queued_at) return a.queued_at - b.queued_at;
  return a.id < b.id ? -1 : 1;
}
