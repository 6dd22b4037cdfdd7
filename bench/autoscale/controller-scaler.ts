import { decide } from '../../autoscaler/controller/decide.js';
import {
  EMPTY_STATE,
  type JobDemand,
  type PoolSnapshot,
  type PoolState,
} from '../../autoscaler/controller/types.js';
import { type PoolPolicy, poolPolicies } from '../../platform/config/autoscale-pools.js';
import type { Fleet, Scaler } from './fleet.js';
import type { SimJob } from './sim-job.js';

const INTERVAL_SECONDS = 10;
const EPOCH_MS = Date.parse('2026-01-05T00:00:00Z');
const TYPE = 'gpu';

export interface ControllerOptions {
  idle_seconds: number;
  move_seconds: number | null;
  /** Time by which it knows jobs before they arrive. */
  foresight_seconds?: number;
}

/** The product's controller on the fleet's virtual clock. With foresight it sees jobs before they arrive. */
export class ControllerScaler implements Scaler {
  private readonly policy: PoolPolicy;
  private readonly foresightSeconds: number;
  private state: PoolState = EMPTY_STATE;
  private next = 0;

  constructor({ trace }: Fleet, { foresight_seconds = 0, ...fields }: ControllerOptions) {
    this.foresightSeconds = foresight_seconds;
    const types = [{ name: TYPE, slots: trace.slots, max: Math.ceil(trace.gpus / trace.slots) }];
    const pool = {
      pool: 'sim',
      types,
      max_ranks: trace.gpus,
      ...fields,
      boot_grace_seconds: 2 * trace.boot_seconds,
    };
    [this.policy] = poolPolicies(JSON.stringify([pool])) as [PoolPolicy];
  }

  step(fleet: Fleet): void {
    if (fleet.now < this.next) return;
    this.next = fleet.now + INTERVAL_SECONDS;
    const { actions, state } = decide(
      this.policy,
      snapshotOf(fleet, this.foresightSeconds),
      this.state,
      EPOCH_MS + fleet.now * 1000,
    );
    this.state = state;
    for (const action of actions) {
      if (action.kind === 'set_size') {
        fleet.wanted = action.machines;
        continue;
      }
      const machine = fleet.machines.find(({ id }) => id === action.machine);
      if (action.kind === 'vacate') {
        if (machine) fleet.vacate(machine);
        continue;
      }
      // Same answer as the job store: no machine that has work by now.
      if (!machine || machine.jobs.size > 0) continue;
      fleet.wanted -= 1;
      fleet.end(machine);
    }
  }
}

function snapshotOf(fleet: Fleet, foresightSeconds: number): PoolSnapshot {
  const { slots } = fleet.trace;
  const demand = ({ id, need, want, ranks }: Pick<SimJob, 'id' | 'need' | 'want' | 'ranks'>): JobDemand => ({
    id,
    project: 'sim',
    priority: 0,
    need,
    want,
    multiple: 1,
    held: ranks,
  });
  const up = fleet.machines.filter((machine) => fleet.isReady(machine));
  return {
    jobs: [...fleet.running, ...fleet.waiting, ...fleet.coming(foresightSeconds)].map(demand),
    backgroundTasks: 0,
    problems: [],
    workers: up.map((machine) => ({
      id: machine.id,
      machine: machine.id,
      numerics: null,
      slots,
      free: machine.free,
      busy: machine.jobs.size > 0,
      draining: fleet.isLeaving(machine) || machine.retiring,
      retiring: machine.retiring,
      save_seconds: null,
    })),
    scheduling: fleet.snapshot(),
    machines: fleet.machines.map((machine) => ({
      id: machine.id,
      type: TYPE,
      terminating: fleet.isLeaving(machine),
    })),
    wanted: { [TYPE]: fleet.wanted },
    drained: [],
    quotas: {},
  };
}
