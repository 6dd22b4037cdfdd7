import { type Candidate, countRanks, inOrder, Shares } from './order.js';
import { selectPreemptions } from './preemption.js';
import { type Group, Slots } from './slots.js';
import type { Decision, Growth, RunningJob, Snapshot } from './types.js';

/** Time that smaller jobs may pass a job that does not fit. Afterwards free slots are held for it. */
export const HOLD_MS = 60_000;

/**
 * Decides for all jobs of a pool at once: which waiting jobs start and where, which running ones grow, and
 * which get preemption requests. A gang gets its minimum of ranks or none. The decision depends only on the
 * snapshot, not on the order of its lists.
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

/** Pass over the waiting jobs in their order. */
class Pass {
  readonly starts: Decision['starts'] = [];
  readonly requests: Decision['requests'] = [];
  readonly reasons: Decision['waiting'] = new Map();
  /** Groups that could run a job that keeps waiting. */
  readonly wanted = new Set<Group>();
  /** Groups with preemption requests, by the job that they were made for. */
  private readonly preempting = new Map<string, Set<Group>>();
  private anyWaits = false;

  constructor(
    private readonly snapshot: Snapshot,
    private readonly running: readonly RunningJob[],
    private readonly slots: Slots,
    private readonly shares: Shares,
  ) {
    for (const { request, placements } of running) {
      const group = request && slots.groupOf(placements);
      if (group) this.addPreempting(request.for, group);
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
    const grantedPriority = this.shares.pointsOf(candidate);
    const started = this.slots.start(job.demand, groups, job.avoid);
    if (!started) return false;
    const { group, placements } = started;
    this.starts.push({ job_id: job.id, group: group.name, placements, granted_priority: grantedPriority });
    this.shares.serve(job.project, group, countRanks(placements));
    return true;
  }

  private keepWaiting(candidate: Candidate): void {
    const { job, groups } = candidate;
    this.reasons.set(job.id, groups.every(({ held }) => held) ? 'order' : 'slots');
    if (!this.anyWaits && !this.preempting.has(job.id)) this.requestPreemption(candidate);
    this.anyWaits = true;
    const isHeld = this.snapshot.now - job.queued_at >= HOLD_MS;
    for (const group of groups) {
      this.wanted.add(group);
      // Preempted slots are reserved for the requesting job.
      if (isHeld || this.preempting.get(job.id)?.has(group)) group.held = true;
    }
  }

  private requestPreemption(candidate: Candidate): void {
    const preemptions = selectPreemptions(
      candidate,
      this.shares.pointsOf(candidate),
      this.slots,
      this.running,
    );
    if (!preemptions) return;
    this.requests.push(...preemptions.requests);
    this.addPreempting(candidate.job.id, preemptions.group);
  }

  private addPreempting(id: string, group: Group): void {
    this.preempting.set(id, (this.preempting.get(id) ?? new Set<Group>()).add(group));
  }
}

/**
 * Grows running jobs in groups that no job waits for, jobs of the projects that use the fewest ranks first.
 */
function growthOf(
  running: readonly RunningJob[],
  requests: Decision['requests'],
  { slots, shares, wanted }: { slots: Slots; shares: Shares; wanted: ReadonlySet<Group> },
): Growth[] {
  const asked = new Set(requests.map(({ job_id }) => job_id));
  const growing = running
    .filter(({ id, may_change, request, move, placements }) => {
      const group = slots.groupOf(placements);
      return may_change && !request && !move && !asked.has(id) && group && !wanted.has(group);
    })
    .sort((a, b) => shares.usedBy(a.project) - shares.usedBy(b.project) || (a.id < b.id ? -1 : 1));
  const growth: Growth[] = [];
  for (const { id, demand, placements, avoid } of growing) {
    const more = slots.grow(demand, placements, avoid);
    if (more) growth.push({ job_id: id, placements: more });
  }
  return growth;
}
