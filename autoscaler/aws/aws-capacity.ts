import { ZerofleetError } from '../../contracts/index.js';
import type { MachineType, PoolPolicy } from '../../platform/config/autoscale-pools.js';
import type { Logger } from '../../platform/logging/logging.js';
import type { Capacity, CapacityView } from '../capacity/port.js';
import type { Group, Groups, TerminationHook } from './groups.js';

export interface AwsCapacityOptions {
  groups: Groups;
  log: Logger;
  /** Unix time in ms. */
  clock?: () => number;
}

/**
 * For so long after a call of ours a description may still tell of the time before: what we asked for counts instead. Somebody else's
 * change of a size is seen after that time, too.
 */
export const CONSISTENCY_MS = 60_000;
/** Instances that were ended are remembered for longer than they take to go. */
const ENDED_MS = 3_600_000;
const HOOKS_MS = 600_000;
/** A machine is held for no longer, whatever its agent says: one that hangs would cost money until somebody looks. */
export const MAX_HOLD_MS = 3_600_000;
/** Of a hook's time, this much passes between two heartbeats: one that is lost does no harm. */
const HEARTBEAT_PART = 1 / 3;

/** Own calls that descriptions may not tell of yet. */
interface Own {
  /** The size that was asked for. */
  desired: { machines: number; at: number } | null;
  hooks: { all: TerminationHook[]; at: number } | null;
}

/**
 * Machines of Auto Scaling groups, one for each type. The groups protect new instances from scale-in, so that only this one ends any:
 * by its id, with one fewer wanted. Instances that are to be terminated are held by a lifecycle hook until their agent has handed
 * everything back; for those that this one ended, on which nothing runs, the hook is completed as soon as it holds them.
 */
export class AwsCapacity implements Capacity {
  private readonly own = new Map<string, Own>();
  /** As they were described last. */
  private readonly seen = new Map<string, Group>();
  /** Instances that this one ended, with the time. */
  private readonly ended = new Map<string, number>();
  /** Instances that are held because they still save: since when, and when that was said last. */
  private readonly held = new Map<string, { since: number; at: number }>();
  private readonly clock: () => number;

  constructor(private readonly options: AwsCapacityOptions) {
    this.clock = options.clock ?? Date.now;
  }

  async view({ pool, types }: PoolPolicy): Promise<CapacityView> {
    const groups = await this.options.groups.describe(types.map(groupName));
    this.forget();
    const view: CapacityView = { machines: [], wanted: {} };
    for (const type of types) {
      const group = groups.find(({ name }) => name === groupName(type));
      if (!group) {
        throw new ZerofleetError(
          'invalid_configuration',
          `there is no Auto Scaling group ${groupName(type)} for the type ${type.name} of the pool ${pool}; make one, or name ` +
            'another as `group` in ZEROFLEET_AUTOSCALE_POOLS',
        );
      }
      if (!this.seen.has(group.name)) this.warn(type, group);
      this.seen.set(group.name, group);
      for (const { id, leaving } of group.instances) {
        view.machines.push({ id, type: type.name, leaving: leaving || this.ended.has(id) });
      }
      view.wanted[type.name] = this.ownOf(group.name).desired?.machines ?? group.desired;
      await this.letEndedGo(group);
    }
    return view;
  }

  async want({ pool, types }: PoolPolicy, type: string, machines: number): Promise<void> {
    const { groups, log } = this.options;
    const name = groupName(typeOf(types, type));
    const group = this.seen.get(name);
    const size = group ? Math.min(Math.max(machines, group.min), group.max) : machines;
    if (size !== machines) {
      log.warn(
        { pool, group: name, machines, size },
        'the size of the group is limited: see its minimum and maximum',
      );
    }
    await groups.setDesired(name, size);
    this.ownOf(name).desired = { machines: size, at: this.clock() };
  }

  async retire({ types }: PoolPolicy, machine: string): Promise<void> {
    const { groups } = this.options;
    const described = types.flatMap((type) => this.seen.get(groupName(type)) ?? []);
    const group = described.find(({ instances }) => instances.some(({ id }) => id === machine));
    const instance = group?.instances.find(({ id }) => id === machine);
    if (!group || !instance) return;
    if (instance.waits) await this.complete(group, machine);
    if (instance.leaving || this.ended.has(machine)) return;
    await groups.terminate(machine);
    this.ended.set(machine, this.clock());
    const own = this.ownOf(group.name);
    own.desired = { machines: Math.max(0, (own.desired?.machines ?? group.desired) - 1), at: this.clock() };
  }

  async hold({ types }: PoolPolicy, machines: readonly string[]): Promise<void> {
    const now = this.clock();
    for (const group of types.flatMap((type) => this.seen.get(groupName(type)) ?? [])) {
      for (const { id, waits } of group.instances) {
        // Nothing ran on those that this one ended.
        if (!waits || !machines.includes(id) || this.ended.has(id)) continue;
        const held = this.held.get(id) ?? { since: now, at: now };
        this.held.set(id, held);
        if (now - held.since < MAX_HOLD_MS) await this.beat(group, id, held);
      }
    }
  }

  private async beat(group: Group, instance: string, held: { at: number }): Promise<void> {
    const now = this.clock();
    const hooks = await this.hooksOf(group);
    const period_ms = Math.min(...hooks.map(({ timeout_ms }) => timeout_ms)) * HEARTBEAT_PART;
    // Its time began when it began to leave, which was seen just then.
    if (now - held.at < period_ms) return;
    for (const { name } of hooks) await this.options.groups.heartbeat(group.name, name, instance);
    held.at = now;
    this.options.log.info({ machine: instance }, 'still saving: the hook was asked to wait longer');
  }

  /** What of a group does not fit is said once. */
  private warn({ name: type, max }: MachineType, group: Group): void {
    if (group.min === 0 && group.max >= max) return;
    const { name, min, max: most } = group;
    this.options.log.warn(
      { type, group: name, min, max: most },
      `the group should have the minimum 0, or instances that are idle can't be ended, and a maximum of at least ${max}`,
    );
  }

  /** Instances stay. */
  async close(): Promise<void> {}

  private async letEndedGo(group: Group): Promise<void> {
    for (const { id, waits } of group.instances) {
      if (waits && this.ended.has(id)) await this.complete(group, id);
    }
  }

  private async complete(group: Group, instance: string): Promise<void> {
    for (const { name } of await this.hooksOf(group))
      await this.options.groups.completeHook(group.name, name, instance);
  }

  private async hooksOf({ name }: Group): Promise<TerminationHook[]> {
    const own = this.ownOf(name);
    own.hooks ??= { all: await this.options.groups.terminationHooks(name), at: this.clock() };
    return own.hooks.all;
  }

  private ownOf(group: string): Own {
    const known = this.own.get(group) ?? { desired: null, hooks: null };
    this.own.set(group, known);
    return known;
  }

  private forget(): void {
    const now = this.clock();
    for (const own of this.own.values()) {
      if (own.desired && now - own.desired.at >= CONSISTENCY_MS) own.desired = null;
      if (own.hooks && now - own.hooks.at >= HOOKS_MS) own.hooks = null;
    }
    for (const [id, { at }] of this.held) if (now - at >= ENDED_MS) this.held.delete(id);
    for (const [id, at] of this.ended) if (now - at >= ENDED_MS) this.ended.delete(id);
  }
}

const groupName = ({ name, group }: MachineType) => group ?? name;

function typeOf(types: readonly MachineType[], name: string): MachineType {
  const type = types.find((each) => each.name === name);
  if (!type) throw new Error(`no type ${name}`);
  return type;
}
