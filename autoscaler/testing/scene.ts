/** Helpers for one decision of the controller on a snapshot written by a test. */

import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import { snapshotOf } from '../../scheduler/testing/pool.js';
import { decide } from '../controller/decide.js';
import {
  EMPTY_STATE,
  type Machine,
  type MachineState,
  type PoolSnapshot,
  type PoolState,
  type TypeState,
  type WorkerView,
} from '../controller/types.js';
import { NOW, policyOf } from './world.js';

export const SECOND_MS = 1000;
export const IDLE_S = 120;

export const machine = (id: string, fields: Partial<Machine> = {}): Machine => ({
  id,
  type: 'm',
  terminating: false,
  ...fields,
});
export const worker = (on: string | null, fields: Partial<WorkerView> = {}): WorkerView => ({
  id: `w-${on}`,
  machine: on,
  numerics: null,
  slots: 4,
  free: 4,
  busy: false,
  draining: false,
  retiring: false,
  save_seconds: null,
  ...fields,
});
export const idleFor = (seconds: number): MachineState => ({
  known: true,
  idle_since: NOW - seconds * SECOND_MS,
  missing: null,
});
export const missing = (timeouts: number, known = false): MachineState => ({
  known,
  idle_since: null,
  missing: { since: NOW, timeouts },
});
export const paused = (until: number, fields: Partial<TypeState> = {}): TypeState => ({
  owed: null,
  failures: 0,
  paused_until: until,
  ...fields,
});

export const TWO: Partial<PoolPolicy> = {
  types: [
    { name: 'm', slots: 4, max: 10, price_per_hour: 4 },
    { name: 'expensive', slots: 4, max: 10, price_per_hour: 8 },
  ],
};

export interface Scene {
  policy?: Partial<PoolPolicy>;
  snapshot?: Partial<PoolSnapshot>;
  state?: Partial<PoolState>;
}

/** Returns a pool without jobs, workers and machines, overridden by `fields`. */
export const poolWith = (fields: Partial<PoolSnapshot>): PoolSnapshot => ({
  jobs: [],
  backgroundTasks: 0,
  workers: [],
  scheduling: snapshotOf({}),
  machines: [],
  wanted: {},
  problems: [],
  drained: [],
  quotas: {},
  ...fields,
});

/** Returns the decision. By default, the wanted sizes equal the present machines. */
export function decided({ policy = {}, snapshot = {}, state = {} }: Scene) {
  const machines = snapshot.machines ?? [];
  const wanted: Record<string, number> = {};
  for (const { type, terminating } of machines) if (!terminating) wanted[type] = (wanted[type] ?? 0) + 1;
  return decide(
    policyOf({ idle_seconds: IDLE_S, ...policy }),
    poolWith({ wanted, ...snapshot }),
    { ...EMPTY_STATE, observed_at: NOW - 5 * SECOND_MS, ...state },
    NOW,
  );
}

export const retire = (id: string, reason: string) => ({ kind: 'retire', machine: id, reason });
export const setSize = (type: string, machines: number) => ({ kind: 'set_size', type, machines });
