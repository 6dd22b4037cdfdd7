/**
 * Inputs, state and outputs of the controller. Times are Unix milliseconds; sizes are ranks unless named
 * machines.
 */

import type { LaunchProblem, PoolPod } from '../../contracts/index.js';
import type { Snapshot } from '../../scheduler/types.js';
import type { JobDemandRecord as JobDemand, WorkerUse as WorkerView } from '../../state/index.js';

export type { JobDemand, LaunchProblem, WorkerView };

export interface Machine {
  id: string;
  /** Name of its type. */
  type: string;
  /** True while it is being ended, by any client. It provides no ranks. */
  terminating: boolean;
}

/** State of one pool at one moment. */
export interface PoolSnapshot {
  /** Running and waiting jobs; waiting ones by queue position. */
  jobs: readonly JobDemand[];
  /**
   * Background tasks that need an agent but no ranks: samples, exports, cancellations that no agent handles
   * yet.
   */
  backgroundTasks: number;
  workers: readonly WorkerView[];
  /** The scheduler's view of the pool. */
  scheduling: Snapshot;
  machines: readonly Machine[];
  /** Requested machines by type, without those that are leaving. */
  wanted: Readonly<Record<string, number>>;
  /** Reasons for which requested machines do not come. */
  problems: readonly LaunchProblem[];
  /** Where machines are pods. */
  pods?: readonly PoolPod[];
  /** Ids of machines whose agent has drained and waits to be ended. */
  drained: readonly string[];
  /** Maximum of ranks by project, for projects with a quota. */
  quotas: Readonly<Record<string, number>>;
}

/** Stored state of a machine. */
export interface MachineState {
  /** True once its agent has registered. */
  known: boolean;
  /**
   * Start of its idle time, possibly in the future; null while it is busy or before its agent has registered.
   */
  idle_since: number | null;
  /**
   * Start of the time without an agent, and how often it exceeded the grace period; null while its agent is
   * live.
   */
  missing: { since: number; timeouts: number } | null;
}

/** Stored state of a machine type. */
export interface TypeState {
  /**
   * Requested machines that have not appeared, and since when their number has not dropped; null if there are
   * none.
   */
  owed: { since: number; machines: number } | null;
  /** Machines replaced in a row because they never registered. */
  failures: number;
  /** Time until which the type is not requested. */
  paused_until: number;
  /** Numerics of the last agent seen on a machine of the type; absent before the first agent. */
  numerics?: WorkerView['numerics'];
}

/** Stored state of a waiting job for which machines are requested, or were until its deadline. */
interface GangState {
  /** Ranks of the pool's agents when their number was last seen to grow, or nothing was free. */
  ranks: number;
  since: number;
  /** Deadlines that have passed. */
  tries: number;
  /** Time of the next try. */
  paused_until: number;
}

/** State of a pool from one decision to the next. Plain JSON. */
export interface PoolState {
  observed_at: number | null;
  machines: Record<string, MachineState>;
  types: Record<string, TypeState>;
  /**
   * Machines that agents name but the capacity does not list, by time of first sight: new ones may not be
   * listed yet.
   */
  unlisted_since: Record<string, number>;
  /** Machines whose jobs would fit on other machines, by the time since which they do. */
  vacatable_since: Record<string, number>;
  /** Waiting jobs for which machines are held or whose deadline has passed, by id. */
  gangs: Record<string, GangState>;
  /** Reasons that were last reported to the waiting jobs, by id. */
  wait_reasons: Record<string, WaitReason>;
  /** Longest save that agents of the pool last reported; absent before the first report. */
  save_seconds?: number;
  /** Cost of machines on `day` (RFC 3339 date, UTC). */
  spent: { day: string; amount: number };
}

/** `budget`: ended with the jobs that run on it, which save and return to the queue. */
export type RetireReason = 'idle' | 'never_registered' | 'agent_lost' | 'drained' | 'budget';

export type Action =
  /** Sets the number of machines of a type; never ends one. */
  | { kind: 'set_size'; type: string; machines: number }
  /** Moves the jobs of one machine to others, if they still fit; afterwards it is retired. */
  | { kind: 'vacate'; machine: string }
  /** Ends one machine unless it is in use by then, and decrements the size of its type. */
  | { kind: 'retire'; machine: string; reason: RetireReason };

/**
 * Reason for which a waiting job gets no machines. `gang`: only a part of its machines came in time; they are tried
 * again later. `launch_failed`: machines cannot be launched.
 */
export type WaitReason = 'too_large' | 'quota' | 'capacity' | 'budget' | 'gang' | 'launch_failed';

/** Inputs and results of a decision, for operators and metrics. */
export interface PoolReport {
  /** Ranks that jobs should have within the limits of machines, quotas and budget. */
  desired_ranks: number;
  /** Ranks that jobs hold. */
  running_ranks: number;
  /** Ranks that machines have or will have. */
  provisioned_ranks: number;
  /** Waiting jobs that get no machines, by reason. */
  unschedulable: Record<WaitReason, number>;
  /** By type: machines with an agent, without one, requested, and terminating. */
  machines: Record<string, { running: number; starting: number; requested: number; terminating: number }>;
  problems: readonly LaunchProblem[];
  pods: readonly PoolPod[];
  idle_machines: number;
  /** Agents that do not report their machine. While there are any, no machine counts as missing its agent. */
  unidentified_agents: number;
  /** Cost of machines since midnight, UTC. */
  daily_cost: number;
  budget_exhausted: boolean;
  /** How often the machines without an agent exceeded the grace period. */
  missing_agent_timeouts: number;
  /** Machines replaced in a row because they never registered, over all types. */
  strikes: number;
}

export interface Decision {
  actions: Action[];
  /**
   * Leaving machines whose agents are still saving or returning jobs; they must not be ended before that is
   * done.
   */
  saving: string[];
  /** Waiting jobs that get no machines, with the reason, if it is a new one. */
  explain: { job_id: string; reason: WaitReason; message: string }[];
  state: PoolState;
  report: PoolReport;
}

export const EMPTY_STATE: PoolState = {
  observed_at: null,
  machines: {},
  types: {},
  unlisted_since: {},
  vacatable_since: {},
  gangs: {},
  wait_reasons: {},
  spent: { day: '', amount: 0 },
};
