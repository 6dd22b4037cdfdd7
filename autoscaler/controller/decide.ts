/**
 * Controller of one pool: computes actions from a snapshot without side effects and with no clock but `now`.
 *
 * 1. Retires machines that have drained, whose agent was missing too long twice, or that an earlier decision chose; all
 *   that cost something if the budget of the day is spent.
 * 2. Compares the ranks of present and requested machines with the ranks that jobs should have (demand.ts). Also
 *    compares them with the ranks that give one group of equal numerics enough ranks for a job (groups.ts).
 * 3. Requests what is missing at once, of the cheapest types that limits and budget allow.
 * 4. Releases the surplus: requests at once, machines after their idle timeout. The caller first asks the job store
 *   whether the machine is idle, in the atomic step that closes it to new work. So a machine with a lease is never
 *   taken.
 * 5. Gives up the machines of gangs that were not complete in time (gangs.ts).
 * 6. Vacates machines of the remaining surplus whose jobs fit on others, when that pays (consolidate.ts).
 */
import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import { affordablePerHour, charge, isExhausted } from './budget.js';
import { affordable, chooseMachines, ranksOf, type Supply } from './choose.js';
import { consolidate } from './consolidate.js';
import { type Demand, demandOf } from './demand.js';
import { advanceGangs, heldGangs } from './gangs.js';
import { type Growth, ranksForGroups } from './groups.js';
import { countFailure, isOverdue, MAX_TIMEOUTS, observe } from './observe.js';
import { machinesOf, type Plan, presentRanks, type TypePlan } from './plan.js';
import { reportOf } from './report.js';
import type { Action, Decision, PoolSnapshot, PoolState } from './types.js';
import { newReasons, waitReasons } from './wait-reasons.js';

/** Time that a type is not requested after its launches timed out. */
const LAUNCH_PAUSE_MS = 300_000;

export function decide(policy: PoolPolicy, snapshot: PoolSnapshot, state: PoolState, now: number): Decision {
  const observation = observe(policy, snapshot, state, now);
  const spent = charge(state, now, pricePerHour(policy, snapshot));
  const gangs = advanceGangs(policy, snapshot, state.gangs, { now, gap: observation.gap });
  const plan: Plan = {
    policy,
    snapshot,
    observation,
    now,
    spent,
    gangs,
    types: new Map(),
    retired: new Map(),
  };
  retireMachines(plan);
  keepBudget(plan);
  countTypes(plan);
  const possible = suppliesOf(plan);
  const supplies = affordableOf(plan, possible);
  const present = presentRanks(plan);
  const demand = wantedRanks(plan, present, supplies, possible);
  const missing = demand.ranks - present;
  const added = chooseMachines(missing, supplies);
  const surplus = missing < 0 ? scaleDown(plan, -missing) : 0;
  const machines = [...plan.types.values()].flatMap(({ staying }) => staying);
  const { vacated, vacatable_since } = consolidate(policy, snapshot, state, { machines, surplus, now });
  for (const [name, type] of plan.types) type.requested += added.get(name) ?? 0;
  const reasons = waitReasons(demand, snapshot.problems);
  return {
    actions: [...actionsOf(plan), ...vacated.map((machine): Action => ({ kind: 'vacate', machine }))],
    saving: savingMachines(snapshot),
    explain: newReasons(state.wait_reasons, reasons, snapshot.problems),
    state: {
      observed_at: now,
      machines: Object.fromEntries(observation.machines.map(({ id, state }) => [id, state])),
      types: Object.fromEntries([...observation.types].map(([name, { state }]) => [name, state])),
      unlisted_since: observation.unlisted_since,
      vacatable_since,
      gangs: heldGangs(gangs, demand.admitted),
      wait_reasons: Object.fromEntries(reasons),
      ...(observation.save_seconds !== undefined && { save_seconds: observation.save_seconds }),
      spent,
    },
    report: reportOf(plan, demand, reasons),
  };
}

/** Step 1 of the description above. */
function retireMachines({ policy, snapshot, observation, now, retired }: Plan): void {
  const busy = new Set(snapshot.workers.flatMap((worker) => (worker.busy ? (worker.machine ?? []) : [])));
  const drained = new Set(snapshot.drained);
  for (const { id } of snapshot.machines) if (drained.has(id) && !busy.has(id)) retired.set(id, 'drained');
  const failed = new Set<string>();
  // An agent that does not report its machine may belong to a machine that seems to miss its agent.
  const someAreAnonymous = snapshot.workers.some(({ machine }) => machine === null);
  for (const { id, type, workers, state } of observation.machines) {
    if (retired.has(id)) continue;
    if (workers.some(({ retiring }) => retiring) && !busy.has(id)) retired.set(id, 'idle');
    if (!state.missing || state.missing.timeouts < MAX_TIMEOUTS || someAreAnonymous) continue;
    retired.set(id, state.known ? 'agent_lost' : 'never_registered');
    if (!state.known) failed.add(type);
  }
  for (const [name, { state }] of observation.types)
    if (failed.has(name)) countFailure(state, policy.boot_grace_seconds * 1000, now);
}

/** Ends all machines that cost something when the budget of the day is spent, unless running jobs may finish. */
function keepBudget({ policy, observation, spent, retired }: Plan): void {
  if (policy.on_budget === 'finish' || !isExhausted(policy.budget_per_day, spent.amount)) return;
  for (const { id, type } of observation.machines) {
    if ((observation.types.get(type)?.type.price_per_hour ?? 0) > 0) retired.set(id, 'budget');
  }
}

/** Counts the machines that stay, by type. Drops requests that another type should take over. */
function countTypes({ policy, snapshot, observation, now, types, retired }: Plan): void {
  const remaining = observation.machines.filter(({ id }) => !retired.has(id));
  let left = observation.unlisted;
  for (const [name, known] of observation.types) {
    const staying = remaining.filter(({ type }) => type === name);
    const all = observation.machines.filter(({ type }) => type === name);
    const owed = Math.max(0, (snapshot.wanted[name] ?? 0) - all.length);
    const unlisted = Math.min(owed, left);
    left -= unlisted;
    types.set(name, { ...known, staying, unlisted, requested: owed - unlisted });
  }
  const plans = [...types.values()];
  for (const plan of plans) {
    const { type, state, requested } = plan;
    const isLate = isOverdue(state, requested, policy.launch_timeout_seconds * 1000, now);
    const fails = requested > 0 && snapshot.problems.some((problem) => problem.type === type.name);
    if (!isLate && !fails) continue;
    if (!plans.some((other) => other !== plan && other.state.paused_until <= now)) continue;
    state.paused_until = Math.max(state.paused_until, now + LAUNCH_PAUSE_MS);
    plan.requested = 0;
  }
}

/** Returns the machines that could be added within the maximum of each type. */
function withoutPauses(types: Plan['types']): Supply[] {
  return [...types.values()].map((plan) => ({
    type: plan.type,
    machines: Math.max(0, plan.type.max - machinesOf(plan)),
  }));
}

/** Returns those of them that could be added now. */
function suppliesOf({ now, types }: Plan): Supply[] {
  const isPaused = ({ name }: Supply['type']) => (types.get(name)?.state.paused_until ?? 0) > now;
  return withoutPauses(types).map(({ type, machines }) => ({
    type,
    machines: isPaused(type) ? 0 : machines,
  }));
}

/** Returns those of them that the budget of the next hour allows. */
function affordableOf({ policy, now, spent, types }: Plan, supplies: readonly Supply[]): Supply[] {
  const committed = [...types.values()].reduce(
    (sum, plan) => sum + machinesOf(plan) * plan.type.price_per_hour,
    0,
  );
  return affordable(supplies, affordablePerHour(policy.budget_per_day, spent.amount, now) - committed);
}

function wantedRanks(
  { policy, snapshot, observation, gangs, types }: Plan,
  present: number,
  supplies: readonly Supply[],
  possible: readonly Supply[],
): Demand {
  const ofTypes = policy.types.reduce((sum, { slots, max }) => sum + slots * max, 0);
  const maxRanks = observation.static_ranks + Math.min(policy.max_ranks ?? ofTypes, ofTypes);
  const ranks = Math.min(maxRanks, present + ranksOf(supplies));
  const unbudgeted = Math.min(maxRanks, present + ranksOf(possible));
  const unpaused = Math.min(maxRanks, present + ranksOf(withoutPauses(types)));
  const limits = {
    ranks,
    unbudgeted,
    unpaused,
    max_ranks: maxRanks,
    quotas: snapshot.quotas,
    paused: gangs.paused,
  };
  const demand = demandOf(snapshot.jobs, limits);
  const least = Math.max(policy.min_ranks, snapshot.backgroundTasks > 0 ? 1 : 0);
  const ofGroups = ranksForGroups(demand.admitted, snapshot.workers, growthOf(types, supplies), ranks);
  return { ...demand, ranks: Math.max(demand.ranks, Math.min(least, ranks), ofGroups) };
}

/**
 * Counts, by type, the ranks without an agent yet: of machines that are starting, requested, or could be
 * added.
 */
function growthOf(types: Plan['types'], supplies: readonly Supply[]): Growth[] {
  return [...types].map(([name, { type, staying, requested, state }]) => {
    const starting = staying.filter(({ workers }) => workers.length === 0).length;
    const added = supplies.find((supply) => supply.type.name === name)?.machines ?? 0;
    return { ranks: (starting + requested + added) * type.slots, numerics: state.numerics };
  });
}

/** Step 4 of the description above. Returns the surplus that is left. */
function scaleDown({ policy, now, types, retired }: Plan, ranks: number): number {
  let surplus = ranks;
  const perSlot = ({ type }: TypePlan) => type.price_per_hour / type.slots;
  const byPriceDesc = [...types.values()].sort((a, b) => perSlot(b) - perSlot(a));
  for (const plan of byPriceDesc) {
    const cancelled = Math.min(plan.requested, Math.floor(surplus / plan.type.slots));
    plan.requested -= cancelled;
    surplus -= cancelled * plan.type.slots;
  }
  for (const plan of byPriceDesc) {
    const idle = plan.staying
      .filter(
        ({ state }) => state.idle_since !== null && now - state.idle_since >= policy.idle_seconds * 1000,
      )
      .sort((a, b) => (a.state.idle_since ?? 0) - (b.state.idle_since ?? 0));
    for (const machine of idle) {
      if (machine.ranks > surplus) continue;
      surplus -= machine.ranks;
      retired.set(machine.id, 'idle');
      plan.staying = plan.staying.filter((other) => other !== machine);
    }
  }
  return surplus;
}

function actionsOf({ snapshot, observation, types, retired }: Plan): Action[] {
  const actions: Action[] = [...retired].map(([machine, reason]) => ({ kind: 'retire', machine, reason }));
  for (const [type, plan] of types) {
    const gone = observation.machines.filter(
      (machine) => machine.type === type && retired.has(machine.id),
    ).length;
    const wanted = Math.max(0, (snapshot.wanted[type] ?? 0) - gone);
    // More machines than requested: the source has launched successors of some that it will end. The size is not raised
    // for these.
    const machines = machinesOf(plan) - Math.max(0, plan.staying.length - wanted);
    if (machines !== wanted) actions.push({ kind: 'set_size', type, machines });
  }
  return actions;
}

function savingMachines({ machines, workers, drained }: PoolSnapshot): string[] {
  const alive = new Set(workers.flatMap(({ machine }) => machine ?? []));
  const isSaving = (id: string) => alive.has(id) && !drained.includes(id);
  return machines.flatMap(({ id, terminating }) => (terminating && isSaving(id) ? [id] : []));
}

/** Sums the prices of all machines, including those that are leaving. */
function pricePerHour(policy: PoolPolicy, { machines }: PoolSnapshot): number {
  const prices = new Map(policy.types.map(({ name, price_per_hour }) => [name, price_per_hour]));
  return machines.reduce((sum, { type }) => sum + (prices.get(type) ?? 0), 0);
}
