/**
 * Input and output of the scheduler for a pool at one moment. Times are Unix milliseconds. Sizes are ranks;
 * each takes one slot.
 */

/**
 * Memory that each rank needs on a GPU if the job has at least `ranks` ranks, up to the next step of the
 * list.
 */
interface MemoryStep {
  ranks: number;
  bytes: number;
}

/** Ranks that a job can use: `need` to `want`, always a multiple of `multiple`. */
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
  /** Workers of one group compute the same bits. All ranks of a job lie in one group. */
  group: string;
  slots: number;
  /** False while draining: running ranks stay, none are added. */
  schedulable: boolean;
  /** Memory of the smallest of its GPUs; null if ranks run on the CPU. */
  gpu_bytes: number | null;
  /** Domains of the network that contain it, the largest first, such as zone and host. */
  topology: readonly string[];
}

/** Workers that could not connect to each other for a job, which is not placed on both for a while. */
export type AvoidedPair = readonly [string, string];

export interface WaitingJob {
  id: string;
  project: string;
  priority: number;
  queued_at: number;
  demand: Demand;
  avoid: readonly AvoidedPair[];
}

/** Request to a running job to shrink to `ranks`, or to release all slots (0), for the waiting job `for`. */
interface PreemptionRequest {
  ranks: number;
  for: string;
}

export interface RunningJob {
  id: string;
  project: string;
  priority: number;
  /** Points at its start. */
  granted_priority: number;
  demand: Demand;
  /** The leader's first. */
  placements: readonly Placement[];
  /** False until a worker has claimed it, and until its growth interval has passed. */
  may_change: boolean;
  avoid: readonly AvoidedPair[];
  request: PreemptionRequest | null;
  /** Placements of its next generation, which are reserved for it; null unless it moves. */
  move: readonly Placement[] | null;
}

export interface Snapshot {
  now: number;
  workers: readonly SchedulerWorker[];
  running: readonly RunningJob[];
  waiting: readonly WaitingJob[];
  /** Last start of a waiting job, by project and group. */
  served_at: ReadonlyMap<string, ReadonlyMap<string, number>>;
}

/**
 * Reason why a job keeps waiting:
 * - `workers`: no group of workers could run it on an empty pool;
 * - `slots`: too few slots are free;
 * - `order`: the free slots are held for an earlier job.
 */
type WaitReason = 'workers' | 'slots' | 'order';

/** Start of a job. `granted_priority` are its points: a waiting job with more points may preempt it. */
export interface Start {
  job_id: string;
  group: string;
  placements: Placement[];
  granted_priority: number;
}

/** Growth of a running job. */
export interface Growth {
  job_id: string;
  /** All its placements, including the previous ones. */
  placements: Placement[];
}

/** Move of a running job: all placements of its next generation, the leader's first. */
export interface Move {
  job_id: string;
  placements: Placement[];
}

export interface Decision {
  starts: Start[];
  growth: Growth[];
  /** New requests to running jobs without one. */
  requests: { job_id: string; request: PreemptionRequest }[];
  /** Running jobs whose request is withdrawn because the requesting job no longer waits. */
  withdrawn: string[];
  /** Reason for each waiting job that does not start. */
  waiting: Map<string, WaitReason>;
}
