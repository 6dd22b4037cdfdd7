/** Report of one decision, for operators and metrics. */
import { isExhausted } from './budget.js';
import type { Demand } from './demand.js';
import { type Plan, presentRanks } from './plan.js';
import type { PoolReport, WaitReason } from './types.js';
import { countReasons } from './wait-reasons.js';

export function reportOf(plan: Plan, demand: Demand, reasons: ReadonlyMap<string, WaitReason>): PoolReport {
  const { policy, snapshot, observation, spent, types } = plan;
  const machines = [...types].map(([name, { staying, requested }]) => {
    const running = staying.filter(({ workers }) => workers.length > 0).length;
    const all = snapshot.machines.filter(({ type }) => type === name).length;
    return [
      name,
      { running, starting: staying.length - running, requested, terminating: all - staying.length },
    ] as const;
  });
  return {
    desired_ranks: demand.ranks,
    running_ranks: snapshot.jobs.reduce((sum, { held }) => sum + held, 0),
    provisioned_ranks: presentRanks(plan),
    unschedulable: countReasons(reasons),
    machines: Object.fromEntries(machines),
    problems: snapshot.problems,
    pods: snapshot.pods ?? [],
    idle_machines: observation.machines.filter(({ state }) => state.idle_since !== null).length,
    missing_agent_timeouts: observation.machines.reduce(
      (sum, { state }) => sum + (state.missing?.timeouts ?? 0),
      0,
    ),
    strikes: [...types.values()].reduce((sum, { state }) => sum + state.failures, 0),
    unidentified_agents: snapshot.workers.filter(({ machine }) => machine === null).length,
    daily_cost: spent.amount,
    budget_exhausted: isExhausted(policy.budget_per_day, spent.amount),
  };
}
