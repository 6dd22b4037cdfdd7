/** Simulated pool: machines start when they are wanted, agents register on them, and time passes at once. */

import { type PoolPolicy, poolPolicies } from '../../platform/config/autoscale-pools.js';
import { snapshotOf } from '../../scheduler/testing/pool.js';
import { decide } from '../controller/decide.js';
import {
  type Decision,
  EMPTY_STATE,
  type JobDemand,
  type LaunchProblem,
  type Machine,
  type PoolSnapshot,
  type PoolState,
  type RetireReason,
  type WorkerView,
} from '../controller/types.js';

export const NOW = Date.parse('2026-11-22T12:00:00Z');

/** Returns a pool's policy with the defaults of the configuration. */
export function policyOf(fields: Partial<PoolPolicy> = {}): PoolPolicy {
  const pool = { pool: 'default', types: [{ name: 'm', slots: 4, max: 10, price_per_hour: 4 }], ...fields };
  const [policy] = poolPolicies(JSON.stringify([pool]));
  if (!policy) throw new Error('no pool');
  return policy;
}

/** Returns a job that waits for one rank, overridden by `fields`. */
export function jobOf(id: string, fields: Partial<JobDemand> = {}): JobDemand {
  const need = fields.need ?? 1;
  return { id, project: 'default', priority: 0, need, want: need, multiple: 1, held: 0, ...fields };
}

interface WorldMachine extends Machine {
  appeared_at: number;
  worker: WorkerView | null;
}

export class World {
  now = NOW;
  state: PoolState = EMPTY_STATE;
  jobs: JobDemand[] = [];
  backgroundTasks = 0;
  quotas: Record<string, number> = {};
  machines: WorldMachine[] = [];
  problems: LaunchProblem[] = [];
  drained: string[] = [];
  wanted: Record<string, number> = {};
  readonly retired: { machine: string; reason: RetireReason; busy: boolean }[] = [];
  /** Time from launch to the registration of the agent; null for never. */
  bootMs: number | null = 60_000;
  /** Maximum of machines by type. */
  stock: Record<string, number> = {};
  /** Numerics of the agents by machine type. */
  numerics: Record<string, string> = {};
  private count = 0;

  constructor(readonly policy: PoolPolicy) {}

  snapshot(): PoolSnapshot {
    const { jobs, backgroundTasks, quotas, problems, drained, wanted } = this;
    const machines = this.machines.map(({ id, type, terminating }) => ({ id, type, terminating }));
    const workers = this.machines.flatMap(({ worker }) =>
      worker ? { ...worker, free: worker.draining ? 0 : worker.free } : [],
    );
    const pool = { jobs, backgroundTasks, quotas, problems, drained, wanted, machines, workers };
    return { ...structuredClone(pool), scheduling: snapshotOf({}) };
  }

  /** Makes one decision, performs its actions, then advances time by `ms`. */
  tick(ms = 10_000): Decision {
    const decision = decide(this.policy, this.snapshot(), this.state, this.now);
    // As stored in Redis.
    this.state = JSON.parse(JSON.stringify(decision.state));
    for (const action of decision.actions) {
      if (action.kind === 'set_size') this.wanted[action.type] = action.machines;
      else if (action.kind === 'retire') this.retire(action.machine, action.reason);
    }
    this.pass(ms);
    return decision;
  }

  ticks(count: number, ms?: number): Decision {
    for (let i = 1; i < count; i += 1) this.tick(ms);
    return this.tick(ms);
  }

  /** Places jobs in order: each gets the free ranks of the group that has most. */
  place(): void {
    const workers = this.machines.flatMap(({ worker }) => (worker && !worker.draining ? [worker] : []));
    const freeOf = (group: readonly WorkerView[]) => group.reduce((sum, { free }) => sum + free, 0);
    const groups = [...new Set(workers.map(({ numerics }) => numerics))].map((numerics) =>
      workers.filter((worker) => worker.numerics === numerics),
    );
    for (const worker of workers) Object.assign(worker, { free: worker.slots, busy: false });
    this.jobs = this.jobs.map((job) => {
      const [group = []] = groups.sort((a, b) => freeOf(b) - freeOf(a));
      const held = job.need <= freeOf(group) ? Math.min(job.want, freeOf(group)) : 0;
      let left = held;
      for (const worker of group) {
        const taken = Math.min(worker.free, left);
        if (taken > 0) Object.assign(worker, { free: worker.free - taken, busy: true });
        left -= taken;
      }
      return { ...job, held };
    });
  }

  private pass(ms: number): void {
    this.now += ms;
    this.machines = this.machines.filter(({ terminating }) => !terminating);
    for (const { name, slots } of this.policy.types) {
      const there = () => this.machines.filter(({ type }) => type === name).length;
      const most = Math.min(this.wanted[name] ?? 0, this.stock[name] ?? Number.POSITIVE_INFINITY);
      while (there() < most) {
        this.count += 1;
        const id = `${name}-${this.count}`;
        this.machines.push({ id, type: name, terminating: false, appeared_at: this.now, worker: null });
      }
      for (const machine of this.machines.filter(({ type, worker }) => type === name && !worker)) {
        if (this.bootMs === null || this.now - machine.appeared_at < this.bootMs) continue;
        machine.worker = {
          id: `w-${machine.id}`,
          machine: machine.id,
          numerics: this.numerics[name] ?? null,
          slots,
          free: slots,
          busy: false,
          draining: false,
          retiring: false,
          save_seconds: null,
        };
      }
    }
    this.place();
  }

  private retire(id: string, reason: RetireReason): void {
    const machine = this.machines.find((candidate) => candidate.id === id);
    if (!machine) throw new Error(`${id} does not exist`);
    this.retired.push({ machine: id, reason, busy: machine.worker?.busy ?? false });
    if (!machine.terminating) this.wanted[machine.type] = (this.wanted[machine.type] ?? 0) - 1;
    machine.terminating = true;
    machine.worker = null;
  }
}
