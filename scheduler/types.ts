/**
 * What the scheduler sees of a pool at one moment, and what it decides. Times are Unix milliseconds. Sizes are ranks; each takes
 * one slot.
 */

/** Memory that each rank needs on a GPU if the job has at least so many ranks, until the next step of the list. */
export interface MemoryStep {
  ranks: number;
  bytes: number;
}

/** How many ranks a job can use: `want`, or fewer, but at least `need`; always a multiple of `multiple`. */
export interface Demand {
  need: number;
  want: number;
  multiple: number;
  /** By increasing ranks; empty for a job that fits on any GPU. */
  memory: readonly MemoryStep[];
}

/** Ranks of a job on one worker. */
export interface Placement {
  worker_id: string;
  ranks: number;
}

export interface SchedulerWorker {
  id: string;
  /** Workers of one group compute the same bits, and the ranks of a job lie in one group. */
  group: string;
  slots: number;
  /** False while it drains: what runs there stays, nothing is added. */
  schedulable: boolean;
  /** Memory of the smallest of its GPUs; null where ranks run on the CPU. */
  gpu_bytes: number | null;
}

/** Workers that could not reach each other when they had ranks of a job: it is not placed on both, for a while. */
export type AvoidedPair = readonly [string, string];

export interface WaitingJob {
  id: string;
  project: string;
  priority: number;
  queued_at: number;
  demand: Demand;
  avoid: readonly AvoidedPair[];
}

/** A running job was asked to shrink to `ranks`, or to leave (0), for the job `for`. */
export interface PreemptionRequest {
  ranks: number;
  for: string;
}

export interface RunningJob {
  id: string;
  project: string;
  priority: number;
  /** The points with which it began. */
  granted_priority: number;
  demand: Demand;
  /** Its leader first. */
  placements: readonly Placement[];
  /** False while it may not grow yet. */
  may_grow: boolean;
  avoid: readonly AvoidedPair[];
  request: PreemptionRequest | null;
}

export interface Snapshot {
  now: number;
  workers: readonly SchedulerWorker[];
  running: readonly RunningJob[];
  waiting: readonly WaitingJob[];
  /** When a waiting job of a project last began in a group, by project and group. */
  served_at: ReadonlyMap<string, ReadonlyMap<string, number>>;
}

/**
 * Why a job goes on waiting: no group of workers could run it even if nothing else ran (`workers`), too few slots are free
 * (`slots`), or those that are free are kept for a job before it (`order`).
 */
export type WaitReason = 'workers' | 'slots' | 'order';

/**
 * A job that begins. `granted_priority` are its points: a running job may be asked to make room for a waiting
 * one that has more.
 */
export interface Start {
  job_id: string;
  group: string;
  placements: Placement[];
  granted_priority: number;
}

/** A running job that gets more ranks. */
export interface Growth {
  job_id: string;
  /** All of them, those that it had included. */
  placements: Placement[];
}

export interface Decision {
  starts: Start[];
  growth: Growth[];
  /** Of running jobs that have none. */
  requests: { job_id: string; request: PreemptionRequest }[];
  /** Running jobs whose request is withdrawn: the job that it was made for waits no longer. */
  withdrawn: string[];
  /** Each waiting job that does not begin. */
  waiting: Map<string, WaitReason>;
}
