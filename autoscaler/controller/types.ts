/** What the controller sees, remembers and decides. Times are Unix milliseconds, sizes are ranks unless they say machines. */

/** What one job asks of its pool. */
export interface JobDemand {
  id: string;
  project: string;
  priority: number;
  /** Fewest and most ranks that it would run on now, and what its number has to be a multiple of. */
  need: number;
  want: number;
  multiple: number;
  /** Ranks that it has now; 0 for one that waits. */
  held: number;
}

/** An agent that has announced itself and is alive. */
export interface WorkerView {
  id: string;
  /** The machine that it runs on, as the capacity calls it; null for one that nobody scales. */
  machine: string | null;
  /** The scope of bit-exactness of its ranks; those of one job have the same. */
  numerics: string | null;
  slots: number;
  /** Slots that no job holds and new work may have; none where it is draining. */
  free: number;
  /** Whether a job holds places on it. */
  busy: boolean;
  /** It takes nothing new any more. */
  draining: boolean;
  /** Because its machine is to go: somebody decided that before and may not have come to end it. */
  retiring: boolean;
}

export interface Machine {
  id: string;
  /** Name of its type. */
  type: string;
  /** It is being ended, by whomever; it counts for nothing any more. */
  leaving: boolean;
}

/** One pool at one moment. */
export interface PoolSnapshot {
  /** Those that have ranks or wait for some; those that wait in the order of their turns. */
  jobs: readonly JobDemand[];
  /** Work that needs any agent at all but no ranks: samples, exports, cancellations that nobody carries out yet. */
  errands: number;
  workers: readonly WorkerView[];
  machines: readonly Machine[];
  /** Machines that the capacity was asked for, by type; those that are leaving are not among them. */
  wanted: Readonly<Record<string, number>>;
  /** Ids of machines whose agent has handed everything back and waits for its end. */
  drained: readonly string[];
  /** The most ranks of projects that have such a quota. */
  quotas: Readonly<Record<string, number>>;
}

/** What is known of a machine beyond the snapshot. */
export interface MachineMemory {
  /** Whether its agent was ever heard of. */
  known: boolean;
  /** Since when it has done nothing, or from when on that will count; null while it works, or before its agent was known. */
  idle_since: number | null;
  /** Since when its agent has not been heard of, and how often that was too long; null while it is known. */
  missing: { since: number; strikes: number } | null;
}

/** What is known of a type of machines beyond the snapshot. */
export interface TypeMemory {
  /** Since when it has owed machines without one more appearing; null when it owes none. */
  owed: { since: number; machines: number } | null;
  /** Machines in a row that were replaced because they never registered. */
  failures: number;
  /** Until when no more are asked for. */
  paused_until: number;
  /** Numerics of the agent that was last seen on a machine of the type; absent before the first agent. */
  numerics?: WorkerView['numerics'];
}

/** What the controller remembers of a pool from one decision to the next. Plain JSON. */
export interface PoolState {
  observed_at: number | null;
  machines: Record<string, MachineMemory>;
  types: Record<string, TypeMemory>;
  /** Machines that agents name and nobody lists, and since when: new ones may just not be listed yet. */
  strangers: Record<string, number>;
  /** What machines have cost on the day `day` (RFC 3339 date, UTC). */
  spent: { day: string; amount: number };
}

export type RetireReason = 'idle' | 'never_registered' | 'agent_lost' | 'drained';

export type Action =
  /** So many machines of a type in all; never ends one. */
  | { kind: 'want'; type: string; machines: number }
  /** Ends one machine, unless something runs there by then, and wants one fewer. */
  | { kind: 'retire'; machine: string; reason: RetireReason };

export type RefusedReason = 'too_large' | 'quota' | 'capacity';

/** What a decision was made of, for people and for metrics. */
export interface PoolReport {
  /** Ranks that jobs should have, by what machines, quotas and the budget allow. */
  wanted_ranks: number;
  /** Ranks that jobs hold. */
  running_ranks: number;
  /** Ranks that machines have or will have. */
  ranks: number;
  /** Jobs that get none, by why. */
  refused: Record<RefusedReason, number>;
  /** By type: machines with an agent, machines without, and those that were asked for only. */
  machines: Record<string, { up: number; starting: number; requested: number; leaving: number }>;
  idle_machines: number;
  /** Agents that don't say which machine they run on: as long as there are some, no machine counts as missing its agent. */
  anonymous_agents: number;
  spent: number;
  budget_exhausted: boolean;
  strikes: number;
}

export interface Decision {
  actions: Action[];
  /** Machines that are leaving while their agents still save or hand back: they are not to be taken before that is done. */
  saving: string[];
  state: PoolState;
  report: PoolReport;
}

export const EMPTY_STATE: PoolState = {
  observed_at: null,
  machines: {},
  types: {},
  strangers: {},
  spent: { day: '', amount: 0 },
};
