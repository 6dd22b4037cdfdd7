/**
 * Simulated pool on a virtual clock: jobs arrive, run for a given time, and follow the scheduler's decisions.
 */
import { countRanks } from '../order.js';
import { place } from '../place.js';
import type { Decision, Placement, RunningJob, SchedulerWorker, WaitingJob } from '../types.js';
import { NOW, snapshotOf } from './pool.js';

interface WorldJob extends WaitingJob {
  /** Run time, independent of the number of ranks. */
  runs_ms: number;
}

interface Started {
  job: WorldJob;
  running: RunningJob;
  ends_at: number;
}

export class World {
  now = NOW;
  /** Time of the first start of each job. */
  readonly began = new Map<string, number>();
  private readonly waiting = new Map<string, WorldJob>();
  private readonly started = new Map<string, Started>();
  private readonly servedAt = new Map<string, Map<string, number>>();

  constructor(readonly workers: readonly SchedulerWorker[]) {}

  queue(job: Omit<WorldJob, 'avoid'>): void {
    this.waiting.set(job.id, { ...job, avoid: [] });
  }

  /** Returns the ranks held by each project. */
  usage(): Record<string, number> {
    const usage: Record<string, number> = {};
    for (const { running } of this.started.values())
      usage[running.project] = (usage[running.project] ?? 0) + countRanks(running.placements);
    return usage;
  }

  /** Advances time, then decides. */
  step(ms: number): Decision {
    this.now += ms;
    for (const [id, { job, running, ends_at }] of this.started) {
      if (ends_at <= this.now) this.started.delete(id);
      else if (running.request?.ranks === 0) this.handBack(job);
      else if (running.request) this.shrink(id, running.request.ranks);
    }
    const { now, workers, servedAt } = this;
    const running = [...this.started.values()].map((entry) => entry.running);
    const decision = place(
      snapshotOf({ now, workers, served_at: servedAt, running, waiting: [...this.waiting.values()] }),
    );
    for (const start of decision.starts) this.begin(start);
    for (const { job_id, placements } of decision.growth) this.change(job_id, { placements });
    for (const { job_id, request } of decision.requests) this.change(job_id, { request });
    for (const id of decision.withdrawn) this.change(id, { request: null });
    return decision;
  }

  private begin({ job_id, group, placements, granted_priority }: Decision['starts'][number]): void {
    const job = this.waiting.get(job_id) as WorldJob;
    this.waiting.delete(job_id);
    const { id, project, priority, demand } = job;
    const running = {
      ...{ id, project, priority, demand, placements, granted_priority },
      may_change: true,
      avoid: [],
      request: null,
      move: null,
    };
    this.started.set(id, { job, running, ends_at: this.now + job.runs_ms });
    if (!this.began.has(id)) this.began.set(id, this.now);
    const served = this.servedAt.get(project) ?? new Map<string, number>();
    this.servedAt.set(project, served.set(group, this.now));
  }

  private change(id: string, fields: Partial<RunningJob>): void {
    const entry = this.started.get(id) as Started;
    this.started.set(id, { ...entry, running: { ...entry.running, ...fields } });
  }

  private handBack(job: WorldJob): void {
    this.started.delete(job.id);
    this.waiting.set(job.id, { ...job, queued_at: this.now });
  }

  private shrink(id: string, ranks: number): void {
    const { running } = this.started.get(id) as Started;
    let left = ranks;
    const kept: Placement[] = [];
    for (const { worker_id, ranks: had } of running.placements) {
      const some = Math.min(had, left);
      if (some > 0) kept.push({ worker_id, ranks: some });
      left -= some;
    }
    this.change(id, { placements: kept, request: null });
  }
}
