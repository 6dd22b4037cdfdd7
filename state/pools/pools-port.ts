/**
 * The port of the worker pools: workers, their slots and the allocations of jobs.
 *
 * All slots of a pool are counted in the job store. The scheduler allocates them (scheduling-port.ts), a claim takes them over
 * (`JobAttempts.claimAttempt`), and they are held as long as its lease: the slots of a killed worker become free when the lease expires.
 */
import type { Execution } from '../../contracts/execution.js';
import type { Pool } from '../../contracts/index.js';

/** A GPU of a worker. */
export interface WorkerGpu {
  uuid: string;
  /** Model, such as "NVIDIA H100 80GB HBM3". */
  name: string;
  memory_bytes: number;
  /** Driver version. */
  driver: string;
  /** Description of a fault; null for a healthy GPU. */
  problem: string | null;
}

/** State that a worker reports about itself. */
export interface WorkerAnnouncement {
  id: string;
  pool: string;
  host: string;
  pid: number;
  /** Number of ranks that it can run at once. */
  slots: number;
  version: string;
  /** IP address at which other workers reach it. */
  address: string;
  /** Machine that it runs on, by the id that the machines' provider uses; null when unknown. */
  machine: string | null;
  /** The worker is about to leave, or unhealthy: it receives no new work. */
  draining: boolean;
  /** Description of a fault; null for a healthy worker. */
  problem: string | null;
  /** Numerics fingerprint of its ranks: equal fingerprints give equal bits; null when unknown. */
  numerics: string | null;
  /** GPUs of its slots, one rank each; empty where ranks run on the CPU. */
  gpus: WorkerGpu[];
  /** GPUs that answer samples. */
  answer_gpus: WorkerGpu[];
  /** Memory of the host that its processes may use. */
  memory_bytes: number;
}

export interface WorkerRecord extends WorkerAnnouncement {
  used_slots: number;
  /** Workers with a failed connection to or from this worker: until then the job is not placed on both. */
  avoided: { worker_id: string; job_id: string; until: string }[];
  /** RFC 3339 */
  last_seen: string;
}

export interface PoolUse {
  name: string;
  workers: WorkerRecord[];
  /** Jobs that hold slots. */
  running: number;
  /** Jobs that wait for slots. */
  waiting: number;
}

export interface PoolRecord extends PoolUse {
  /** Machines as an autoscaler sees them; null without one. */
  machines: Pool['machines'];
}

/** Slots of one worker that one job holds. */
export interface WorkerSlots {
  worker_id: string;
  slots: number;
}

export interface PoolSlots {
  /**
   * Chooses the slots for the next generation of a running job (scheduler/adjust.ts): fewer when fewer were requested or the pool
   * requests preemption; slots on workers that are gone or draining are replaced.
   * @returns null, without a change, when the job can't have as many ranks as it needs, or has to release all
   * @throws `stale_epoch`; `job_store_unavailable` when every attempt conflicts with a change of the pool
   */
  adjustPlacements(jobId: string, execution: Execution): Promise<WorkerSlots[] | null>;
  /** Registers a worker's slots for the next `ttlMs`; repeat it in time. */
  announceWorker(worker: WorkerAnnouncement, ttlMs: number): Promise<void>;
  /** Stops allocations on the worker. Idempotent. */
  withdrawWorker(workerId: string): Promise<void>;
  /** Lists live workers by id; of one pool when it is named. */
  listWorkers(pool?: string): Promise<WorkerRecord[]>;
  /** Lists pools that have a worker or a waiting job, by name. */
  listPools(): Promise<PoolRecord[]>;
}
