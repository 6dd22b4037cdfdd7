/** What the controller learns of machines and of their types from one snapshot. */
import type { MachineType, PoolPolicy } from '../../platform/config/autoscale-pools.js';
import type { Machine, MachineMemory, PoolSnapshot, PoolState, TypeMemory, WorkerView } from './types.js';

/**
 * After so long without a look, less than a lease lasts, nothing is known of the time between. If Redis was away, leases have run out
 * that their agents will renew: who seems idle may work, and counts as idle only when it has had the time of a lease to say so. Clocks
 * of silence begin anew.
 */
export const MAX_GAP_MS = 25_000;
const LEASE_MS = 30_000;
/** For so long a machine may not be listed yet on which an agent runs already. */
const STRANGER_MS = 120_000;
/** Strikes at which a machine is replaced. */
export const STRIKES = 2;
const MAX_PAUSE_MS = 3_600_000;
const NEW_TYPE: TypeMemory = { owed: null, failures: 0, paused_until: 0 };

/** A machine of the snapshot that is not leaving, with what is known of it. */
export interface KnownMachine extends Machine {
  workers: readonly WorkerView[];
  memory: MachineMemory;
  /** Ranks that new work may have on it. */
  ranks: number;
}

/** A type of the policy, with what is known of it. */
export interface KnownType {
  type: MachineType;
  memory: TypeMemory;
}

export interface Observation {
  machines: KnownMachine[];
  /** Of agents on machines that are not listed: nobody scales them, or they are not listed yet. */
  static_ranks: number;
  strangers: PoolState['strangers'];
  /** How many machines may not be listed yet. */
  unlisted: number;
  /** By name, in the order of the policy. */
  types: ReadonlyMap<string, KnownType>;
}

export function observe(
  policy: PoolPolicy,
  snapshot: PoolSnapshot,
  state: PoolState,
  now: number,
): Observation {
  const blind = now - (state.observed_at ?? 0) > MAX_GAP_MS;
  const scaled = new Set<string | null>(snapshot.machines.map(({ id }) => id));
  const types = new Map(
    policy.types.map((type) => [type.name, { type, memory: { ...(state.types[type.name] ?? NEW_TYPE) } }]),
  );
  const byMachine = workersByMachine(snapshot.workers);
  const machines = snapshot.machines
    .filter(({ leaving }) => !leaving)
    .map((machine): KnownMachine => {
      const workers = byMachine.get(machine.id) ?? [];
      const before = state.machines[machine.id];
      const memory = remember(workers, before, { now, blind, grace_ms: policy.boot_grace_seconds * 1000 });
      const known = types.get(machine.type);
      if (known && before?.missing && !memory.missing) known.memory.failures = 0;
      const [agent] = workers;
      if (known && agent) known.memory.numerics = agent.numerics;
      const ranks = workers.length === 0 ? (known?.type.slots ?? 0) : ranksOfWorkers(workers);
      return { ...machine, workers, memory, ranks };
    });
  const others = snapshot.workers.filter(({ machine }) => !scaled.has(machine));
  const names = [...new Set(others.flatMap(({ machine }) => machine ?? []))];
  const strangers = Object.fromEntries(
    // Whoever was there before the first look is not new.
    names.map((name) => [name, state.strangers[name] ?? (state.observed_at === null ? 0 : now)]),
  );
  const unlisted = Object.values(strangers).filter((since) => now - since < STRANGER_MS).length;
  return { machines, static_ranks: ranksOfWorkers(others), strangers, unlisted, types };
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
  blind: boolean;
  grace_ms: number;
}

function remember(
  workers: readonly WorkerView[],
  before: MachineMemory | undefined,
  { now, blind, grace_ms }: Clock,
): MachineMemory {
  if (workers.length === 0) {
    const { since, strikes } = before?.missing ?? { since: now, strikes: 0 };
    const from = blind ? now : since;
    const missing = now - from >= grace_ms ? { since: now, strikes: strikes + 1 } : { since: from, strikes };
    return { known: before?.known ?? false, idle_since: null, missing };
  }
  if (workers.some(({ busy }) => busy)) return { known: true, idle_since: null, missing: null };
  const idle_since = blind ? now + LEASE_MS : (before?.idle_since ?? now);
  return { known: true, idle_since, missing: null };
}

/** A machine of the type never registered: after the first such the next one may be launched at once, then ever later. */
export function countFailure(type: TypeMemory, grace_ms: number, now: number): void {
  type.failures += 1;
  if (type.failures > 1) {
    type.paused_until = now + Math.min(MAX_PAUSE_MS, grace_ms * 2 ** (type.failures - 2));
  }
}

/** Whether machines that a type owes have failed to appear for too long; remembers since when. */
export function isOverdue(type: TypeMemory, owed: number, timeout_ms: number, now: number): boolean {
  if (owed === 0) type.owed = null;
  else if (!type.owed || owed < type.owed.machines) type.owed = { since: now, machines: owed };
  else type.owed = { since: type.owed.since, machines: owed };
  return type.owed !== null && now - type.owed.since >= timeout_ms;
}
