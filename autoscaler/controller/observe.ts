/** Updates the stored state of machines and their types from one snapshot. */
import type { MachineType, PoolPolicy } from '../../platform/config/autoscale-pools.js';
import type { Machine, MachineState, PoolSnapshot, PoolState, TypeState, WorkerView } from './types.js';

/**
 * Longest gap between observations, shorter than a lease. After a longer one nothing is known of the time
 * between. If Redis was unavailable, leases have expired that agents will renew. So a machine that seems idle
 * counts as idle only one lease later, and all idle and missing timers restart.
 */
export const MAX_GAP_MS = 25_000;
const LEASE_MS = 30_000;
/** Time that a machine may be unlisted while its agent runs already. */
const UNLISTED_GRACE_MS = 120_000;
/** Timeouts of a missing agent after which a machine is replaced. */
export const MAX_TIMEOUTS = 2;
const MAX_PAUSE_MS = 3_600_000;
const NEW_TYPE: TypeState = { owed: null, failures: 0, paused_until: 0 };

/** Machine of the snapshot that is not leaving, with its stored state. */
export interface KnownMachine extends Machine {
  workers: readonly WorkerView[];
  state: MachineState;
  /** Ranks available to new work. */
  ranks: number;
}

/** Machine type of the policy, with its stored state. */
export interface KnownType {
  type: MachineType;
  state: TypeState;
}

export interface Observation {
  /** True if nothing is known of the time since the last observation. */
  gap: boolean;
  machines: KnownMachine[];
  /** Ranks of agents on unlisted machines: unmanaged ones, or ones not listed yet. */
  static_ranks: number;
  unlisted_since: PoolState['unlisted_since'];
  /** Number of machines that may not be listed yet. */
  unlisted: number;
  /** Longest save that agents of the pool last reported. */
  save_seconds?: number;
  /** By name, in the order of the policy. */
  types: ReadonlyMap<string, KnownType>;
}

export function observe(
  policy: PoolPolicy,
  snapshot: PoolSnapshot,
  stored: PoolState,
  now: number,
): Observation {
  const gap = now - (stored.observed_at ?? 0) > MAX_GAP_MS;
  const listed = new Set<string | null>(snapshot.machines.map(({ id }) => id));
  const types = new Map(
    policy.types.map((type) => [type.name, { type, state: { ...(stored.types[type.name] ?? NEW_TYPE) } }]),
  );
  const byMachine = workersByMachine(snapshot.workers);
  const machines = snapshot.machines
    .filter(({ terminating }) => !terminating)
    .map((machine): KnownMachine => {
      const workers = byMachine.get(machine.id) ?? [];
      const before = stored.machines[machine.id];
      const state = nextState(workers, before, { now, gap, grace_ms: policy.boot_grace_seconds * 1000 });
      const known = types.get(machine.type);
      if (known && before?.missing && !state.missing) known.state.failures = 0;
      const [agent] = workers;
      if (known && agent) known.state.numerics = agent.numerics;
      const ranks = workers.length === 0 ? (known?.type.slots ?? 0) : ranksOfWorkers(workers);
      return { ...machine, workers, state, ranks };
    });
  const others = snapshot.workers.filter(({ machine }) => !listed.has(machine));
  const names = [...new Set(others.flatMap(({ machine }) => machine ?? []))];
  const unlistedSince = Object.fromEntries(
    // Machines of the first observation are not new.
    names.map((name) => [name, stored.unlisted_since[name] ?? (stored.observed_at === null ? 0 : now)]),
  );
  const unlisted = Object.values(unlistedSince).filter((since) => now - since < UNLISTED_GRACE_MS).length;
  return {
    gap,
    machines,
    static_ranks: ranksOfWorkers(others),
    unlisted_since: unlistedSince,
    unlisted,
    types,
    ...longestSave(snapshot.workers, stored),
  };
}

/** Pools without agents, and agents before their first save, report none. */
function longestSave(
  workers: readonly WorkerView[],
  { save_seconds }: PoolState,
): Pick<PoolState, 'save_seconds'> {
  const reported = workers.flatMap(({ save_seconds }) => save_seconds ?? []);
  const longest = reported.length > 0 ? Math.max(...reported) : save_seconds;
  return longest === undefined ? {} : { save_seconds: longest };
}

function workersByMachine(workers: readonly WorkerView[]): Map<string | null, WorkerView[]> {
  const found = new Map<string | null, WorkerView[]>();
  for (const worker of workers) {
    const others = found.get(worker.machine);
    if (others) others.push(worker);
    else found.set(worker.machine, [worker]);
  }
  return found;
}

const ranksOfWorkers = (workers: readonly WorkerView[]) =>
  workers.reduce((sum, { slots, draining }) => sum + (draining ? 0 : slots), 0);

interface Clock {
  now: number;
  gap: boolean;
  grace_ms: number;
}

function nextState(
  workers: readonly WorkerView[],
  before: MachineState | undefined,
  { now, gap, grace_ms }: Clock,
): MachineState {
  if (workers.length === 0) {
    const { since, timeouts } = before?.missing ?? { since: now, timeouts: 0 };
    const from = gap ? now : since;
    const missing =
      now - from >= grace_ms ? { since: now, timeouts: timeouts + 1 } : { since: from, timeouts };
    return { known: before?.known ?? false, idle_since: null, missing };
  }
  if (workers.some(({ busy }) => busy)) return { known: true, idle_since: null, missing: null };
  const idleSince = gap ? now + LEASE_MS : (before?.idle_since ?? now);
  return { known: true, idle_since: idleSince, missing: null };
}

/**
 * Records that a machine of the type never registered. The first failure causes no pause, further ones an
 * exponential backoff.
 */
export function countFailure(type: TypeState, graceMs: number, now: number): void {
  type.failures += 1;
  if (type.failures > 1) {
    type.paused_until = now + Math.min(MAX_PAUSE_MS, graceMs * 2 ** (type.failures - 2));
  }
}

/**
 * Returns whether the requested machines of a type have failed to appear within the timeout, and updates the
 * timer.
 */
export function isOverdue(type: TypeState, owed: number, timeoutMs: number, now: number): boolean {
  if (owed === 0) type.owed = null;
  else if (!type.owed || owed < type.owed.machines) type.owed = { since: now, machines: owed };
  else type.owed = { since: type.owed.since, machines: owed };
  return type.owed !== null && now - type.owed.since >= timeoutMs;
}
