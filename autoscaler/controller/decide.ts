/**
 * The controller of one pool: from what is there to what shall be done, without a side effect and by no clock but `now`.
 *
 * 1. Machines that have handed everything back, or whose agent was missing twice too long, are ended; so are those that were told
 *    to go before.
 * 2. What machines have, and those that were asked for will have, is compared with the ranks that jobs should have (demand.ts), and
 *    with those that it takes until one group of equal numerics has enough for a job (groups.ts).
 * 3. What is missing is asked for at once, of the cheapest types that there is room and money for.
 * 4. What is too much goes: requests at once, machines when they have done nothing for their time. Whoever carries it out asks the
 *    job store first whether nothing runs there, in the same step that keeps new work away; so a machine with a lease is never taken.
 */
import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import { affordablePerHour, charge } from './budget.js';
import { affordable, chooseMachines, ranksOf, type Supply } from './choose.js';
import { type Demand, demandOf } from './demand.js';
import { type Growth, ranksForGroups } from './groups.js';
import {
  countFailure,
  isOverdue,
  type KnownMachine,
  type KnownType,
  type Observation,
  observe,
  STRIKES,
} from './memory.js';
import type { Action, Decision, PoolSnapshot, PoolState, RetireReason } from './types.js';

/** For so long no machines are asked for of a type that could not be had. */
const SHORT_MS = 300_000;

/** What is there of one type, and what is to be. */
interface TypePlan extends KnownType {
  /** Machines that stay. */
  there: KnownMachine[];
  /** Machines that were asked for, whose agents are there though they are not listed yet. */
  unlisted: number;
  /** Machines that were asked for and are not there. */
  requested: number;
}

interface Plan {
  policy: PoolPolicy;
  snapshot: PoolSnapshot;
  seen: Observation;
  now: number;
  types: Map<string, TypePlan>;
  retired: Map<string, RetireReason>;
}

export function decide(policy: PoolPolicy, snapshot: PoolSnapshot, state: PoolState, now: number): Decision {
  const seen = observe(policy, snapshot, state, now);
  const plan: Plan = { policy, snapshot, seen, now, types: new Map(), retired: new Map() };
  endUseless(plan);
  countTypes(plan);
  const spent = charge(state, now, pricePerHour(policy, snapshot));
  const supplies = suppliesOf(plan, spent.amount);
  const present = presentRanks(plan);
  const demand = wantedRanks(plan, present, supplies);
  const missing = demand.ranks - present;
  const added = chooseMachines(missing, supplies);
  if (missing < 0) letGo(plan, -missing);
  for (const [name, type] of plan.types) type.requested += added.get(name) ?? 0;
  return {
    actions: actionsOf(plan),
    saving: savingMachines(snapshot),
    state: {
      observed_at: now,
      machines: Object.fromEntries(seen.machines.map(({ id, memory }) => [id, memory])),
      types: Object.fromEntries([...seen.types].map(([name, { memory }]) => [name, memory])),
      strangers: seen.strangers,
      spent,
    },
    report: reportOf(plan, demand, spent.amount),
  };
}

/** 1. in the description above. */
function endUseless({ policy, snapshot, seen, now, retired }: Plan): void {
  const busy = new Set(snapshot.workers.flatMap((worker) => (worker.busy ? (worker.machine ?? []) : [])));
  const drained = new Set(snapshot.drained);
  for (const { id } of snapshot.machines) if (drained.has(id) && !busy.has(id)) retired.set(id, 'drained');
  const failed = new Set<string>();
  // An agent that does not say where it runs may be the one that is missed.
  const someAreAnonymous = snapshot.workers.some(({ machine }) => machine === null);
  for (const { id, type, workers, memory } of seen.machines) {
    if (retired.has(id)) continue;
    if (workers.some(({ retiring }) => retiring) && !busy.has(id)) retired.set(id, 'idle');
    if (!memory.missing || memory.missing.strikes < STRIKES || someAreAnonymous) continue;
    retired.set(id, memory.known ? 'agent_lost' : 'never_registered');
    if (!memory.known) failed.add(type);
  }
  for (const [name, { memory }] of seen.types)
    if (failed.has(name)) countFailure(memory, policy.boot_grace_seconds * 1000, now);
}

/** What stays, by type; requests that another type should take over are given up. */
function countTypes({ policy, snapshot, seen, now, types, retired }: Plan): void {
  const staying = seen.machines.filter(({ id }) => !retired.has(id));
  let left = seen.unlisted;
  for (const [name, known] of seen.types) {
    const there = staying.filter(({ type }) => type === name);
    const all = seen.machines.filter(({ type }) => type === name);
    const owed = Math.max(0, (snapshot.wanted[name] ?? 0) - all.length);
    const unlisted = Math.min(owed, left);
    left -= unlisted;
    types.set(name, { ...known, there, unlisted, requested: owed - unlisted });
  }
  const plans = [...types.values()];
  for (const plan of plans) {
    const { memory, requested } = plan;
    if (!isOverdue(memory, requested, policy.launch_timeout_seconds * 1000, now)) continue;
    if (!plans.some((other) => other !== plan && other.memory.paused_until <= now)) continue;
    memory.paused_until = Math.max(memory.paused_until, now + SHORT_MS);
    plan.requested = 0;
  }
}

/** Machines of a type that stay or were asked for. */
const machinesOf = ({ there, unlisted, requested }: TypePlan) => there.length + unlisted + requested;

/** What could be added now: by what each type may have, and what the budget still pays for the next hour. */
function suppliesOf({ policy, now, types }: Plan, spent: number): Supply[] {
  const plans = [...types.values()];
  const supplies = plans.map((plan) => {
    const { type, memory } = plan;
    return { type, machines: memory.paused_until > now ? 0 : Math.max(0, type.max - machinesOf(plan)) };
  });
  const committed = plans.reduce((sum, plan) => sum + machinesOf(plan) * plan.type.price_per_hour, 0);
  return affordable(supplies, affordablePerHour(policy.budget_per_day, spent, now) - committed);
}

/** Ranks that machines have or will have. */
function presentRanks({ seen, types }: Plan): number {
  const ofTypes = [...types.values()].map(
    ({ type, there, requested }) => requested * type.slots + there.reduce((sum, { ranks }) => sum + ranks, 0),
  );
  return seen.static_ranks + ofTypes.reduce((sum, ranks) => sum + ranks, 0);
}

function wantedRanks(
  { policy, snapshot, seen, types }: Plan,
  present: number,
  supplies: readonly Supply[],
): Demand {
  const of_types = policy.types.reduce((sum, { slots, max }) => sum + slots * max, 0);
  const most_ranks = seen.static_ranks + Math.min(policy.max_ranks ?? of_types, of_types);
  const ranks = Math.min(most_ranks, present + ranksOf(supplies));
  const demand = demandOf(snapshot.jobs, { ranks, most_ranks, quotas: snapshot.quotas });
  const least = Math.max(policy.min_ranks, snapshot.errands > 0 ? 1 : 0);
  const ofGroups = ranksForGroups(demand.admitted, snapshot.workers, growthOf(types, supplies), ranks);
  return { ...demand, ranks: Math.max(demand.ranks, Math.min(least, ranks), ofGroups) };
}

/** Ranks by type whose agents are not there yet: of machines that start, were asked for, or could be added. */
function growthOf(types: Plan['types'], supplies: readonly Supply[]): Growth[] {
  return [...types].map(([name, { type, there, requested, memory }]) => {
    const starting = there.filter(({ workers }) => workers.length === 0).length;
    const added = supplies.find((supply) => supply.type.name === name)?.machines ?? 0;
    return { ranks: (starting + requested + added) * type.slots, numerics: memory.numerics };
  });
}

/** 4. in the description above. */
function letGo({ policy, now, types, retired }: Plan, ranks: number): void {
  let surplus = ranks;
  const perSlot = ({ type }: TypePlan) => type.price_per_hour / type.slots;
  const dearest = [...types.values()].sort((a, b) => perSlot(b) - perSlot(a));
  for (const plan of dearest) {
    const cancelled = Math.min(plan.requested, Math.floor(surplus / plan.type.slots));
    plan.requested -= cancelled;
    surplus -= cancelled * plan.type.slots;
  }
  for (const plan of dearest) {
    const idle = plan.there
      .filter(
        ({ memory }) => memory.idle_since !== null && now - memory.idle_since >= policy.idle_seconds * 1000,
      )
      .sort((a, b) => (a.memory.idle_since ?? 0) - (b.memory.idle_since ?? 0));
    for (const machine of idle) {
      if (machine.ranks > surplus) continue;
      surplus -= machine.ranks;
      retired.set(machine.id, 'idle');
      plan.there = plan.there.filter((other) => other !== machine);
    }
  }
}

function actionsOf({ snapshot, seen, types, retired }: Plan): Action[] {
  const actions: Action[] = [...retired].map(([machine, reason]) => ({ kind: 'retire', machine, reason }));
  for (const [type, plan] of types) {
    const gone = seen.machines.filter((machine) => machine.type === type && retired.has(machine.id)).length;
    const machines = machinesOf(plan);
    if (machines !== (snapshot.wanted[type] ?? 0) - gone) actions.push({ kind: 'want', type, machines });
  }
  return actions;
}

function savingMachines({ machines, workers, drained }: PoolSnapshot): string[] {
  const alive = new Set(workers.flatMap(({ machine }) => machine ?? []));
  const isSaving = (id: string) => alive.has(id) && !drained.includes(id);
  return machines.flatMap(({ id, leaving }) => (leaving && isSaving(id) ? [id] : []));
}

/** Of everything that costs, machines that are leaving included. */
function pricePerHour(policy: PoolPolicy, { machines }: PoolSnapshot): number {
  const prices = new Map(policy.types.map(({ name, price_per_hour }) => [name, price_per_hour]));
  return machines.reduce((sum, { type }) => sum + (prices.get(type) ?? 0), 0);
}

function reportOf(plan: Plan, demand: Demand, spent: number): Decision['report'] {
  const { policy, snapshot, seen, types } = plan;
  const machines = [...types].map(([name, { there, requested }]) => {
    const up = there.filter(({ workers }) => workers.length > 0).length;
    const all = snapshot.machines.filter(({ type }) => type === name).length;
    return [name, { up, starting: there.length - up, requested, leaving: all - there.length }] as const;
  });
  return {
    wanted_ranks: demand.ranks,
    running_ranks: snapshot.jobs.reduce((sum, { held }) => sum + held, 0),
    ranks: presentRanks(plan),
    refused: demand.refused,
    machines: Object.fromEntries(machines),
    idle_machines: seen.machines.filter(({ memory }) => memory.idle_since !== null).length,
    strikes: seen.machines.reduce((sum, { memory }) => sum + (memory.missing?.strikes ?? 0), 0),
    anonymous_agents: snapshot.workers.filter(({ machine }) => machine === null).length,
    spent,
    budget_exhausted: spent >= (policy.budget_per_day ?? Number.POSITIVE_INFINITY),
  };
}
