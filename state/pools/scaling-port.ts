/** The port of the autoscaler: demand of pools, and removal of machines. */

import type { Pool } from '../../contracts/index.js';
import type { Snapshot } from '../../scheduler/types.js';

/** Machines of a pool, by type, and why requested ones do not come. */
export type PoolMachines = NonNullable<Pool['machines']>;

/** Demand of one job on its pool, in ranks. */
export interface JobDemandRecord {
  id: string;
  project: string;
  priority: number;
  /** Minimum and maximum number of ranks that it would run on now, and the divisor of that number. */
  need: number;
  want: number;
  multiple: number;
  /** Ranks that it holds; 0 for a waiting job. */
  held: number;
}

/** A live worker. */
export interface WorkerUse {
  id: string;
  /** Machine that it runs on; null when unknown. */
  machine: string | null;
  /** Numerics fingerprint of its ranks; all ranks of a job have the same. */
  numerics: string | null;
  slots: number;
  /** Slots that no job holds and new work may use. */
  free: number;
  /** True when a job holds slots on it. */
  busy: boolean;
  /** It receives no new work. */
  draining: boolean;
  /** Draining because of a call of `retireWorkers` or `vacateWorkers`. */
  retiring: boolean;
}

export interface PoolDemand {
  name: string;
  /** Jobs that hold ranks, then waiting and delayed jobs by the beginning of their wait. */
  jobs: JobDemandRecord[];
  workers: WorkerUse[];
  /** The scheduler's view of the pool. */
  scheduling: Snapshot;
  /** Quota of ranks of each project in `jobs` that has one. */
  quotas: Record<string, number>;
}

export type LeaderLease = { leads: true; state: string } | { leads: false; holder: string };

export interface Scaling {
  /** Reads the demand of pools, sorted by name. A worker's state may be read a moment later than the jobs. */
  readDemand(pools: readonly string[]): Promise<PoolDemand[]>;
  /**
   * Stops new work on all of the workers if none of them is busy. All or none, atomically.
   * @param options `busy`: also on workers with jobs, which the caller asks to save and return them
   * @returns the busy workers; empty: all are retired. Unknown workers are neither
   */
  retireWorkers(workerIds: readonly string[], options?: { busy?: boolean }): Promise<string[]>;
  /** Records the machines of a pool as the autoscaler sees them, for `listPools`. Kept for two minutes. */
  noteMachines(pool: string, machines: PoolMachines): Promise<void>;
  /** Adds an event `job.waiting` to a job that waits: the reason for which no machines are requested for it. */
  explainWait(jobId: string, reason: string, message: string): Promise<void>;
  /**
   * Stops new work on the workers and moves their jobs to other workers of the pool at their next step boundary. The slots there are
   * reserved at once. All or none, atomically.
   * @returns false, without a change, if the ranks do not fit elsewhere now (`vacate` of scheduler/)
   */
  vacateWorkers(pool: string, workerIds: readonly string[]): Promise<boolean>;
  /**
   * Acquires or renews a leader lease for `ttlMs`; 0 releases it.
   * @param state state of the leader, which the next leader receives; undefined keeps the present one
   */
  acquireLeaderLease(name: string, holder: string, ttlMs: number, state?: string): Promise<LeaderLease>;
  /** Records that a machine is drained and may be terminated. Kept for a day. */
  reportDrained(machine: string): Promise<void>;
  /** Lists drained machines. */
  drainedMachines(): Promise<string[]>;
}
