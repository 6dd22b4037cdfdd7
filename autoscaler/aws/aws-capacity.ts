import { ZerofleetError } from '../../contracts/index.js';
import type { MachineType, PoolPolicy } from '../../platform/config/autoscale-pools.js';
import type { Logger } from '../../platform/logging/logging.js';
import { typeOf } from '../capacity/machine-types.js';
import type { Capacity, CapacityView, LaunchProblem } from '../capacity/port.js';
import type { Group, Groups, TerminationHook } from './groups.js';
import { launchProblem } from './launch-problems.js';

interface AwsCapacityOptions {
  groups: Groups;
  log: Logger;
  /** Unix time in ms. */
  clock?: () => number;
}

/**
 * Descriptions are eventually consistent. For this long after a recent call, the requested size counts instead
 * of the described one; changes by other clients are seen afterwards.
 */
export const CONSISTENCY_MS = 60_000;
/** Terminated instances are remembered for longer than their termination takes. */
const TERMINATED_MS = 3_600_000;
const HOOKS_MS = 600_000;
/** Time between two readings of a group's activities. */
const ACTIVITIES_MS = 15_000;
/** Failures before the last request may be answered by it; older ones than this are of no interest. */
const FAILURES_MS = 600_000;
/**
 * Longest time that a machine is held, whatever its agent reports: an agent that hangs would cost money until
 * an operator intervenes.
 */
export const MAX_HOLD_MS = 3_600_000;
/** Fraction of a hook's timeout between two heartbeats, so that one may be lost. */
const HEARTBEAT_FRACTION = 1 / 3;

/** Recent calls: results that descriptions may not show yet, and answers that need not be asked for again. */
interface RecentCalls {
  /** Size that was requested. */
  desired: { machines: number; at: number } | null;
  hooks: { all: TerminationHook[]; at: number } | null;
  problem: { found: Pick<LaunchProblem, 'code' | 'message'> | null; at: number } | null;
}

/**
 * Machines of Auto Scaling groups, one group for each type. The groups protect new instances from scale-in,
 * so that only this class terminates instances: by id, decrementing the desired capacity. A lifecycle hook
 * holds a terminating instance until its agent has returned its jobs. The hook of an instance that this class
 * terminated, which is idle, is completed as soon as it holds the instance.
 */
export class AwsCapacity implements Capacity {
  private readonly recent = new Map<string, RecentCalls>();
  /** Groups as last described, by name. */
  private readonly described = new Map<string, Group>();
  /** Instances that this class terminated, with the time. */
  private readonly terminated = new Map<string, number>();
  /**
   * Instances that are held because they are still saving: since when, and when the last heartbeat was sent.
   */
  private readonly held = new Map<string, { since: number; at: number }>();
  private readonly clock: () => number;

  constructor(private readonly options: AwsCapacityOptions) {
    this.clock = options.clock ?? Date.now;
  }

  async refresh(policies: readonly PoolPolicy[]): Promise<void> {
    const types = policies.flatMap((policy) => policy.types);
    const groups = await this.options.groups.describe(types.map(groupName));
    this.expire();
    for (const group of groups) {
      const type = types.find((each) => groupName(each) === group.name);
      if (type && !this.described.has(group.name)) this.warn(type, group);
    }
    this.described.clear();
    for (const group of groups) this.described.set(group.name, group);
  }

  async view({ pool, types }: PoolPolicy): Promise<CapacityView> {
    const view: CapacityView = { machines: [], wanted: {}, problems: [] };
    for (const type of types) {
      const group = this.described.get(groupName(type));
      if (!group) {
        throw new ZerofleetError(
          'invalid_configuration',
          `there is no Auto Scaling group ${groupName(type)} for the type ${type.name} of the pool ${pool}; create it, or name ` +
            'another as `group` in ZEROFLEET_AUTOSCALE_POOLS',
        );
      }
      for (const { id, terminating } of group.instances) {
        view.machines.push({ id, type: type.name, terminating: terminating || this.terminated.has(id) });
      }
      view.wanted[type.name] = this.recentOf(group.name).desired?.machines ?? group.desired;
      await this.releaseTerminated(group);
      const problem = await this.problemOf(group);
      if (problem) view.problems.push({ type: type.name, ...problem });
    }
    return view;
  }

  /** Reads why a group has fewer instances than it should have. */
  private async problemOf(group: Group): Promise<Pick<LaunchProblem, 'code' | 'message'> | null> {
    const recent = this.recentOf(group.name);
    const numInstances = group.instances.filter(({ terminating }) => !terminating).length;
    if (numInstances >= (recent.desired?.machines ?? group.desired)) {
      recent.problem = null;
      return null;
    }
    const now = this.clock();
    if (!recent.problem || now - recent.problem.at >= ACTIVITIES_MS) {
      const activities = await this.options.groups.activities(group.name);
      recent.problem = { found: launchProblem(activities, now - FAILURES_MS), at: now };
    }
    return recent.problem.found;
  }

  async want({ pool, types }: PoolPolicy, type: string, machines: number): Promise<void> {
    const { groups, log } = this.options;
    const name = groupName(typeOf(types, type));
    const group = this.described.get(name);
    const size = group ? Math.min(Math.max(machines, group.min), group.max) : machines;
    if (size !== machines) {
      log.warn({ pool, group: name, machines, size }, 'the minimum or maximum of the group limits its size');
    }
    await groups.setDesired(name, size);
    this.recentOf(name).desired = { machines: size, at: this.clock() };
  }

  async retire({ types }: PoolPolicy, machine: string): Promise<void> {
    const { groups } = this.options;
    const described = types.flatMap((type) => this.described.get(groupName(type)) ?? []);
    const group = described.find(({ instances }) => instances.some(({ id }) => id === machine));
    const instance = group?.instances.find(({ id }) => id === machine);
    if (!group || !instance) return;
    if (instance.waiting) await this.complete(group, machine);
    if (instance.terminating || this.terminated.has(machine)) return;
    await groups.terminate(machine);
    this.terminated.set(machine, this.clock());
    const recent = this.recentOf(group.name);
    recent.desired = {
      machines: Math.max(0, (recent.desired?.machines ?? group.desired) - 1),
      at: this.clock(),
    };
  }

  async hold({ types }: PoolPolicy, machines: readonly string[]): Promise<void> {
    const now = this.clock();
    for (const group of types.flatMap((type) => this.described.get(groupName(type)) ?? [])) {
      for (const { id, waiting } of group.instances) {
        // Instances that this class terminated were idle.
        if (!waiting || !machines.includes(id) || this.terminated.has(id)) continue;
        const protection = this.held.get(id) ?? { since: now, at: now };
        this.held.set(id, protection);
        if (now - protection.since < MAX_HOLD_MS) await this.sendHeartbeat(group, id, protection);
      }
    }
  }

  private async sendHeartbeat(group: Group, instance: string, protection: { at: number }): Promise<void> {
    const now = this.clock();
    const hooks = await this.hooksOf(group);
    const periodMs = Math.min(...hooks.map(({ timeout_ms }) => timeout_ms)) * HEARTBEAT_FRACTION;
    // The hook's timeout started when the instance began to terminate, at about the time it was first seen.
    if (now - protection.at < periodMs) return;
    for (const { name } of hooks) await this.options.groups.heartbeat(group.name, name, instance);
    protection.at = now;
    this.options.log.info({ machine: instance }, 'still saving: extended the termination hook');
  }

  /** Logs once that the limits of a group do not fit. */
  private warn({ name: type, max }: MachineType, group: Group): void {
    if (group.min === 0 && group.max >= max) return;
    const { name, min, max: most } = group;
    this.options.log.warn(
      { type, group: name, min, max: most },
      `the group should have the minimum 0, or idle instances can't be terminated, and a maximum of at least ${max}`,
    );
  }

  /** Closes nothing: instances keep running. */
  async close(): Promise<void> {}

  private async releaseTerminated(group: Group): Promise<void> {
    for (const { id, waiting } of group.instances) {
      if (waiting && this.terminated.has(id)) await this.complete(group, id);
    }
  }

  private async complete(group: Group, instance: string): Promise<void> {
    for (const { name } of await this.hooksOf(group))
      await this.options.groups.completeHook(group.name, name, instance);
  }

  private async hooksOf({ name }: Group): Promise<TerminationHook[]> {
    const recent = this.recentOf(name);
    recent.hooks ??= { all: await this.options.groups.terminationHooks(name), at: this.clock() };
    return recent.hooks.all;
  }

  private recentOf(group: string): RecentCalls {
    const known = this.recent.get(group) ?? { desired: null, hooks: null, problem: null };
    this.recent.set(group, known);
    return known;
  }

  private expire(): void {
    const now = this.clock();
    for (const recent of this.recent.values()) {
      if (recent.desired && now - recent.desired.at >= CONSISTENCY_MS) recent.desired = null;
      if (recent.hooks && now - recent.hooks.at >= HOOKS_MS) recent.hooks = null;
    }
    for (const [id, { at }] of this.held) if (now - at >= TERMINATED_MS) this.held.delete(id);
    for (const [id, at] of this.terminated) if (now - at >= TERMINATED_MS) this.terminated.delete(id);
  }
}

const groupName = ({ name, group }: MachineType) => group ?? name;
