import { type Candidate, countRanks, inOrder, Shares } from './order.js';
import { requestRoom } from './preemption.js';
import { type Group, Slots } from './slots.js';
import type { Decision, Growth, RunningJob, Snapshot } from './types.js';

/** A job that does not fit lets smaller ones pass for so long; then slots that become free are kept for it. */
export const HOLD_MS = 60_000;

/**
 * Decides for all jobs of a pool at once: which of those that wait begin and where, which running ones grow, and which are asked to
 * make room. A gang gets all the ranks that it needs or none. The decision depends on nothing but the snapshot, and not on the order
 * of its lists.
 */
export function place(snapshot: Snapshot): Decision {
  const waiting = new Set(snapshot.waiting.map(({ id }) => id));
  const withdrawn = snapshot.running.filter(({ request }) => request && !waiting.has(request.for));
  const running = snapshot.running.map((job) => (withdrawn.includes(job) ? { ...job, request: null } : job));
  const slots = new Slots(snapshot.workers, running);
  const shares = new Shares(snapshot);
  const placement = new Pass(snapshot, running, slots, shares);
  const { starts, requests, reasons, wanted } = placement.run();
  return {
    starts,
    growth: growthOf(running, requests, { slots, shares, wanted }),
    requests,
    withdrawn: withdrawn.map(({ id }) => id).sort(),
    waiting: reasons,
  };
}

/** One pass over the waiting jobs in their order. */
class Pass {
  readonly starts: Decision['starts'] = [];
  readonly requests: Decision['requests'] = [];
  readonly reasons: Decision['waiting'] = new Map();
  /** Groups that could run a job that goes on waiting. */
  readonly wanted = new Set<Group>();
  /** Groups in which jobs were asked to make room, by the job that they were asked for. */
  private readonly promised = new Map<string, Set<Group>>();
  private someone_waits = false;

  constructor(
    private readonly snapshot: Snapshot,
    private readonly running: readonly RunningJob[],
    private readonly slots: Slots,
    private readonly shares: Shares,
  ) {
    for (const { request, placements } of running) {
      const group = request && slots.groupOf(placements);
      if (group) this.promise(request.for, group);
    }
  }

  run(): this {
    for (const candidate of inOrder(this.candidates(), this.shares)) {
      if (!this.start(candidate)) this.keepWaiting(candidate);
    }
    return this;
  }

  private candidates(): Candidate[] {
    const candidates: Candidate[] = [];
    for (const job of this.snapshot.waiting) {
      const groups = this.slots.groupsFor(job.demand, job.avoid);
      if (groups.length > 0) candidates.push({ job, groups });
      else this.reasons.set(job.id, 'workers');
    }
    return candidates;
  }

  private start(candidate: Candidate): boolean {
    const { job, groups } = candidate;
    const granted_priority = this.shares.pointsOf(candidate);
    const started = this.slots.start(job.demand, groups, job.avoid);
    if (!started) return false;
    const { group, placements } = started;
    this.starts.push({ job_id: job.id, group: group.name, placements, granted_priority });
    this.shares.serve(job.project, group, countRanks(placements));
    return true;
  }

  private keepWaiting(candidate: Candidate): void {
    const { job, groups } = candidate;
    this.reasons.set(job.id, groups.every(({ kept }) => kept) ? 'order' : 'slots');
    if (!this.someone_waits && !this.promised.has(job.id)) this.askForRoom(candidate);
    this.someone_waits = true;
    const is_held = this.snapshot.now - job.queued_at >= HOLD_MS;
    for (const group of groups) {
      this.wanted.add(group);
      // What others give up for a job is for no one else.
      if (is_held || this.promised.get(job.id)?.has(group)) group.kept = true;
    }
  }

  private askForRoom(candidate: Candidate): void {
    const room = requestRoom(candidate, this.shares.pointsOf(candidate), this.slots, this.running);
    if (!room) return;
    this.requests.push(...room.requests);
    this.promise(candidate.job.id, room.group);
  }

  private promise(id: string, group: Group): void {
    this.promised.set(id, (this.promised.get(id) ?? new Set<Group>()).add(group));
  }
}

/** Running jobs get what no job waits for, those of the project that uses the fewest ranks first. */
function growthOf(
  running: readonly RunningJob[],
  requests: Decision['requests'],
  { slots, shares, wanted }: { slots: Slots; shares: Shares; wanted: ReadonlySet<Group> },
): Growth[] {
  const asked = new Set(requests.map(({ job_id }) => job_id));
  const growing = running
    .filter(({ id, may_grow, request, placements }) => {
      const group = slots.groupOf(placements);
      return may_grow && !request && !asked.has(id) && group && !wanted.has(group);
    })
    .sort((a, b) => shares.usedBy(a.project) - shares.usedBy(b.project) || (a.id < b.id ? -1 : 1));
  const growth: Growth[] = [];
  for (const { id, demand, placements, avoid } of growing) {
    const more = slots.grow(demand, placements, avoid);
    if (more) growth.push({ job_id: id, placements: more });
  }
  return growth;
}
