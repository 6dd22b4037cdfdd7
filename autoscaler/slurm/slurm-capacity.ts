import type { MachineType, PoolPolicy } from '../../platform/config/autoscale-pools.js';
import { DEFAULT_SLURM_OPTIONS } from '../../platform/config/slurm-options.js';
import type { Logger } from '../../platform/logging/logging.js';
import { LaunchBackoff } from '../capacity/launch-backoff.js';
import { keyOf, typeOf } from '../capacity/machine-types.js';
import type { Capacity, CapacityView, LaunchProblem } from '../capacity/port.js';
import { type Allocation, Allocations, isMachine } from './allocations.js';
import type { EndCause } from './causes.js';
import type { SlurmCommands } from './commands.js';
import { problemOfEnd, problemOfPending, problemOfRefusal } from './launch-problems.js';
import { nameOf } from './names.js';
import { type AgentProgram, submissionOf } from './submission.js';

export interface SlurmCapacityOptions {
  commands: Pick<SlurmCommands, 'jobs' | 'records' | 'submit' | 'cancel' | 'terminateAgents' | 'close'>;
  /** Name of this installation in the names of jobs. */
  installation: string;
  agent: AgentProgram;
  log: Logger;
  /** Counts allocations that ended without a request. */
  onEnded?: (pool: string, type: string, cause: EndCause) => void;
  /** Unix time in ms. */
  clock?: () => number;
}

/** Limits of the submissions of one call, which has to end before another autoscaler may lead. */
const MAX_SUBMISSIONS = 50;
const MAX_SUBMIT_MS = 8_000;
/** An allocation that ends earlier counts as a failed launch. */
const LAUNCH_MS = 60_000;
/** Slurm sends the signal before the time limit up to this much earlier; then the agent still needs a moment to end. */
const SIGNAL_MARGIN_MS = 60_000;

/**
 * Machines as allocations of Slurm: one job, one node, one agent each. The queue itself is the record of what was
 * requested: a job's name contains its installation, pool, type and number, so another autoscaler finds all of them.
 * Two jobs of the same name never run at once (`--dependency=singleton`), so an autoscaler that was replaced while it
 * submitted has started nothing twice.
 *
 * A pending allocation is a request, a running one a machine. Slurm ends an allocation at its time limit, for a job of
 * higher priority, or with its node. Its agent saves first, and the controller requests as many as are still needed.
 */
export class SlurmCapacity implements Capacity {
  private readonly allocations: Allocations;
  private readonly backoff: LaunchBackoff;
  private readonly clock: () => number;
  /** Time before the time limit at which agents save, by type. */
  private readonly drainMs = new Map<string, number>();

  constructor(private readonly options: SlurmCapacityOptions) {
    const { commands, installation, log, clock = Date.now } = options;
    this.clock = clock;
    this.backoff = new LaunchBackoff(clock);
    const onEnded = this.ended.bind(this);
    this.allocations = new Allocations({ commands, installation, log, onEnded, clock });
  }

  /** Reads Slurm's queue. */
  async refresh(policies: readonly PoolPolicy[]): Promise<void> {
    for (const { pool, types } of policies) {
      for (const { name, slurm = DEFAULT_SLURM_OPTIONS } of types)
        this.drainMs.set(keyOf(pool, name), slurm.drain_seconds * 1000);
    }
    await this.allocations.refresh();
  }

  async view(policy: PoolPolicy): Promise<CapacityView> {
    const view: CapacityView = { machines: [], wanted: {}, problems: [] };
    for (const type of policy.types) {
      const { name } = type;
      const ofType = this.allocationsOf(policy, name);
      for (const allocation of ofType.filter(isMachine))
        view.machines.push({
          id: allocation.machine,
          type: name,
          terminating: !this.isLive(type, allocation),
        });
      for (const { job } of ofType.filter((allocation) => this.hasLaunched(allocation)))
        this.backoff.succeeded(keyOf(policy.pool, name), job.starts_at);
      view.wanted[name] = await this.launchAgain(policy, type);
      const problem = this.problemOf(policy, type, view.wanted[name]);
      if (problem) view.problems.push(problem);
    }
    return view;
  }

  async want(policy: PoolPolicy, name: string, machines: number): Promise<void> {
    const type = typeOf(policy.types, name);
    const live = this.liveOf(policy, type);
    this.backoff.want(keyOf(policy.pool, name), machines);
    if (live.length > machines) await this.withdraw(live, live.length - machines);
    else await this.submit(policy, type, machines);
  }

  async retire({ pool, types }: PoolPolicy, machine: string): Promise<void> {
    const found = this.allocations.list().find((each) => each.machine === machine);
    if (!found) return;
    const wasLive = this.isLive(typeOf(types, found.type), found);
    await this.allocations.cancel([found], 'always');
    const key = keyOf(pool, found.type);
    if (wasLive) this.backoff.want(key, Math.max(0, this.backoff.owed(key) - 1));
  }

  /** Does nothing: only an administrator can extend a time limit. */
  async hold(): Promise<void> {}

  /** Ends no allocation: they go on, and the next autoscaler finds them. */
  close(): Promise<void> {
    return this.options.commands.close();
  }

  private allocationsOf({ pool }: PoolPolicy, type: string): Allocation[] {
    return this.allocations.list().filter((each) => each.pool === pool && each.type === type);
  }

  private liveOf(policy: PoolPolicy, type: MachineType): Allocation[] {
    return this.allocationsOf(policy, type.name).filter((allocation) => this.isLive(type, allocation));
  }

  /** Returns why requested allocations of a type do not come; null if they only wait for their turn. */
  private problemOf(policy: PoolPolicy, type: MachineType, wanted: number): LaunchProblem | null {
    const live = this.liveOf(policy, type);
    if (live.filter(isMachine).length >= wanted) return null;
    const pending = live.flatMap(({ phase, job }) =>
      phase === 'pending' ? (problemOfPending(job) ?? []) : [],
    );
    const problem = this.backoff.problem(keyOf(policy.pool, type.name)) ?? pending[0];
    return problem ? { type: type.name, ...problem } : null;
  }

  /** Returns whether an allocation is a machine that stays, or will be one. */
  private isLive({ slurm = DEFAULT_SLURM_OPTIONS }: MachineType, { phase, job }: Allocation): boolean {
    if (phase !== 'running') return phase === 'pending';
    // Before the time limit the agent saves, and takes no new work.
    return job.ends_at === 0 || job.ends_at - this.clock() > slurm.drain_seconds * 1000;
  }

  private hasLaunched({ phase, job }: Allocation): boolean {
    return phase === 'running' && this.clock() - job.starts_at >= LAUNCH_MS;
  }

  /** Withdraws the newest requests. Machines stay. */
  private async withdraw(live: readonly Allocation[], count: number): Promise<void> {
    const pending = live.filter(({ phase }) => phase === 'pending').sort((a, b) => b.job.id - a.job.id);
    const last = pending.slice(0, count);
    if (last.length > 0) await this.allocations.cancel(last, 'pending');
  }

  /** Tries the launches of a failing type again. Returns how many machines are requested. */
  private async launchAgain(policy: PoolPolicy, type: MachineType): Promise<number> {
    const owed = this.backoff.owed(keyOf(policy.pool, type.name));
    if (owed > this.liveOf(policy, type).length) {
      await this.submit(policy, type, owed).catch((error: unknown) => {
        this.options.log.warn(
          { err: error, pool: policy.pool, type: type.name },
          'Slurm refuses allocations',
        );
      });
    }
    return Math.max(owed, this.liveOf(policy, type).length);
  }

  /** Submits what is missing. */
  private async submit(policy: PoolPolicy, type: MachineType, machines: number): Promise<void> {
    const key = keyOf(policy.pool, type.name);
    if (this.backoff.isPaused(key)) return;
    const numbers = new Set(this.allocationsOf(policy, type.name).map(({ number }) => number));
    let missing = Math.min(machines - this.liveOf(policy, type).length, MAX_SUBMISSIONS);
    const until = this.clock() + MAX_SUBMIT_MS;
    for (let number = 0; missing > 0 && this.clock() < until; number += 1) {
      if (numbers.has(number)) continue;
      missing -= 1;
      await this.submitOne(policy, type, number).catch((error: unknown) => {
        this.backoff.failed(key, problemOfRefusal(error));
        throw error;
      });
    }
  }

  private async submitOne({ pool }: PoolPolicy, type: MachineType, number: number): Promise<void> {
    const { commands, installation, agent, log } = this.options;
    const identity = { pool, type: type.name, number };
    const name = nameOf(installation, identity);
    const job = await commands.submit(submissionOf({ pool }, type, name, agent));
    this.allocations.submitted(job, identity);
    log.info({ job, name }, 'allocation requested');
  }

  private ended(allocation: Allocation, reported: EndCause, leftMs: number): void {
    const { job, pool, type, machine } = allocation;
    const key = keyOf(pool, type);
    const limitMs = (this.drainMs.get(key) ?? 0) + SIGNAL_MARGIN_MS;
    const cause =
      reported === 'completed' && job.starts_at > 0 && leftMs <= limitMs ? 'time_limit' : reported;
    const { states, reason } = job;
    this.options.log.warn({ machine, pool, type, cause, states, reason }, 'an allocation ended');
    this.options.onEnded?.(pool, type, cause);
    // Such a type would be requested again and again.
    const failed = cause === 'failed' || cause === 'completed';
    if (cause === 'refused' || (failed && job.ends_at - job.starts_at < LAUNCH_MS))
      this.backoff.failed(key, problemOfEnd(machine, job, cause));
  }
}
