import type { Logger } from '../../platform/logging/logging.js';
import { causeOf, type EndCause, type Phase, phaseOf } from './causes.js';
import type { SlurmCommands } from './commands.js';
import type { JobRecord, SlurmJob } from './job.js';
import { type AllocationName, machineOf, parseName } from './names.js';

/** Job of the queue that is a machine of this installation, or a request for one. */
export interface Allocation extends AllocationName {
  job: SlurmJob;
  phase: Phase;
  /** Id of the machine. */
  machine: string;
}

interface AllocationsOptions {
  commands: Pick<SlurmCommands, 'jobs' | 'records' | 'cancel' | 'terminateAgents'>;
  /** Name of this installation in the names of jobs. */
  installation: string;
  log: Logger;
  /** Called for each allocation that ended without a request. @param leftMs time that was left to its time limit */
  onEnded(allocation: Allocation, cause: EndCause, leftMs: number): void;
  /** Unix time in ms. */
  clock: () => number;
}

interface Known {
  allocation: Allocation;
  /** Request to end it: `pending` if only while it is pending. */
  cancelled: 'pending' | 'always' | null;
  /** True once its agent knows of the preemption. */
  isNotified: boolean;
}

/** Allocations of an installation, read from Slurm's queue, and how they end. */
export class Allocations {
  /** Allocations that have not ended, by job. */
  private readonly known = new Map<number, Known>();
  private hasAccounting = true;

  constructor(private readonly options: AllocationsOptions) {}

  /** Lists allocations that have not ended, without withdrawn requests. Machines that were cancelled are leaving. */
  list(): Allocation[] {
    return [...this.known.values()].flatMap(({ allocation, cancelled }): Allocation[] => {
      if (cancelled === null) return [allocation];
      return isMachine(allocation) ? [{ ...allocation, phase: 'leaving' }] : [];
    });
  }

  /** Adds an allocation that was submitted. It may have ended before the queue is read. */
  submitted(id: number, name: AllocationName): void {
    const times = { starts_at: 0, ends_at: 0, preempted_at: 0, restarts: 0 };
    const job: SlurmJob = { id, name: '', user: '', states: ['PENDING'], reason: 'None', ...times };
    const allocation: Allocation = { ...name, job, phase: 'pending', machine: machineOf(id, 0) };
    this.known.set(id, { allocation, cancelled: null, isNotified: false });
  }

  /** Ends allocations, each once. @param only `pending`: not those that have started meanwhile */
  async cancel(allocations: readonly Allocation[], only: 'pending' | 'always'): Promise<void> {
    const ids = allocations
      .map(({ job }) => job.id)
      .filter((id) => this.known.get(id)?.cancelled !== 'always');
    await this.options.commands.cancel(ids, only === 'pending' ? 'PENDING' : undefined);
    for (const id of ids) {
      const known = this.known.get(id);
      if (known) known.cancelled = only;
    }
  }

  /** Reads the queue. */
  async refresh(): Promise<void> {
    const { commands, installation } = this.options;
    // Others may be submitted meanwhile.
    const before = [...this.known.keys()];
    const jobs = await commands.jobs(installation);
    const listed = new Set(jobs.map(({ id }) => id));
    await this.removeLost(before.filter((id) => !listed.has(id)));
    for (const job of jobs) {
      const name = parseName(installation, job.name);
      if (name) this.update({ ...name, job, phase: phaseOf(job), machine: machineOf(job.id, job.restarts) });
    }
    await this.withdrawHopeless();
    await this.announcePreemptions();
  }

  /** Compares an allocation with what is known of it. */
  private update(allocation: Allocation): void {
    const { job, phase } = allocation;
    const before = this.known.get(job.id);
    if (phase === 'ended') {
      if (before) this.ended(before, allocation, causeOf(job));
      return;
    }
    const known = before ?? { allocation, cancelled: null, isNotified: false };
    if (job.restarts > known.allocation.job.restarts) {
      this.options.onEnded(known.allocation, 'requeued', 0);
      known.isNotified = false;
    }
    known.allocation = allocation;
    this.known.set(job.id, known);
    if (known.cancelled === 'pending' && phase === 'running') known.cancelled = null;
  }

  /** Cancels requests that would stay in the queue for ever. */
  private async withdrawHopeless(): Promise<void> {
    const hopeless = [...this.known.values()]
      .filter(({ allocation, cancelled }) => allocation.phase === 'hopeless' && cancelled === null)
      .map(({ allocation }) => allocation);
    if (hopeless.length === 0) return;
    try {
      await this.cancel(hopeless, 'always');
      for (const allocation of hopeless) this.options.onEnded(allocation, 'refused', 0);
    } catch (error) {
      const machines = hopeless.map(({ machine }) => machine);
      this.options.log.warn({ err: error, machines }, 'could not withdraw requests that Slurm refuses');
    }
  }

  /** Slurm itself signals only job steps when the grace period of a preemption begins. */
  private async announcePreemptions(): Promise<void> {
    const preempted = [...this.known.values()].filter(
      ({ allocation, isNotified }) => isInGracePeriod(allocation) && !isNotified,
    );
    if (preempted.length === 0) return;
    const ids = preempted.map(({ allocation }) => allocation.job.id);
    try {
      await this.options.commands.terminateAgents(ids);
      for (const known of preempted) known.isNotified = true;
    } catch (error) {
      this.options.log.warn({ err: error, jobs: ids }, 'could not announce a preemption to agents');
    }
  }

  private ended({ allocation, cancelled }: Known, last: Allocation, cause: EndCause): void {
    this.known.delete(last.job.id);
    if (cancelled !== null) return;
    // An agent that saves in the grace period ends without an error.
    const wasPreempted = cause === 'completed' && isInGracePeriod(allocation);
    // Until it ends, the end of an allocation is its time limit. Without a last state the time of the end is unknown.
    const leftMs = last === allocation ? Number.POSITIVE_INFINITY : allocation.job.ends_at - last.job.ends_at;
    this.options.onEnded(last, wasPreempted ? 'preempted' : cause, leftMs);
  }

  /** Forgets allocations that the queue does not list any more; the accounting has their causes. */
  private async removeLost(ids: readonly number[]): Promise<void> {
    const lost = ids.flatMap((id) => this.known.get(id) ?? []);
    const records = await this.records(
      lost.flatMap(({ allocation, cancelled }) => (cancelled === null ? allocation.job.id : [])),
    );
    for (const known of lost) {
      const { allocation } = known;
      const record = records.find(({ id }) => id === allocation.job.id);
      this.ended(known, allocation, record ? causeOf(record) : 'unknown');
    }
  }

  private async records(ids: readonly number[]): Promise<JobRecord[]> {
    if (!this.hasAccounting || ids.length === 0) return [];
    try {
      return await this.options.commands.records(ids);
    } catch (error) {
      this.hasAccounting = !/disabled/.test(String(error));
      this.options.log.warn({ err: error, jobs: ids }, 'sacct does not report how allocations ended');
      return [];
    }
  }
}

/** Returns whether Slurm has started an allocation. */
export const isMachine = ({ phase }: Allocation): boolean => phase === 'running' || phase === 'leaving';

function isInGracePeriod({ job, phase }: Allocation): boolean {
  return phase === 'leaving' && job.preempted_at > 0 && job.states.includes('RUNNING');
}
