/**
 * The port of the worker pools: who offers slots, and which job holds how many of them where.
 *
 * All slots of a pool are counted in the job store. The scheduler allocates them (scheduling-port.ts), a claim takes them over
 * (`JobAttempts.claimAttempt`), and they are held as long as its lease: those of a worker that was killed become free by
 * themselves.
 */
import type { Execution } from '../../contracts/execution.js';

/** A GPU on which one rank of a worker runs. */
export interface WorkerGpu {
  uuid: string;
  /** Its model, such as "NVIDIA H100 80GB HBM3". */
  name: string;
  memory_bytes: number;
  /** Version of its driver. */
  driver: string;
  /** What is wrong with it, in words; null for a healthy one. */
  problem: string | null;
}

/** What a worker says of itself. */
export interface WorkerAnnouncement {
  id: string;
  pool: string;
  host: string;
  pid: number;
  /** Ranks that it can run at once. */
  slots: number;
  version: string;
  /** IP address at which other agents reach it. */
  address: string;
  /** The machine that it runs on, as those call it who start and end machines; null where it was not told. */
  machine: string | null;
  /** It is about to leave, or has a problem: nothing new begins on it. */
  draining: boolean;
  /** What is wrong with it, in words; null for a healthy one. */
  problem: string | null;
  /** What decides the bits of what its ranks compute, their fingerprint of numerics; null where it is not known. */
  numerics: string | null;
  /** Those of its slots, one rank each; empty where ranks run on the CPU. */
  gpus: WorkerGpu[];
  /** Of the host, as far as its processes may use it. */
  memory_bytes: number;
}

export interface WorkerRecord extends WorkerAnnouncement {
  used_slots: number;
  /** Workers that it could not reach, or that could not reach it: until then the job is not placed on both. */
  avoided: { worker_id: string; job_id: string; until: string }[];
  /** RFC 3339 */
  last_seen: string;
}

export interface PoolRecord {
  name: string;
  workers: WorkerRecord[];
  /** Jobs that hold places. */
  running: number;
  /** Jobs that wait for places. */
  waiting: number;
}

/** Slots of one worker that belong to one job. */
export interface Place {
  worker_id: string;
  slots: number;
}

export interface PoolPlaces {
  /**
   * Chooses the slots for the next generation of a running job (scheduler/adjust.ts): fewer when fewer were requested or the pool asks
   * for them; those on workers that are gone or leave are replaced.
   * @returns null when it can't have as many ranks as it needs, or has to leave; then nothing is changed
   * @throws `stale_epoch`; `job_store_unavailable` when the pool changes all the time
   */
  adjustPlaces(jobId: string, execution: Execution): Promise<Place[] | null>;
  /** Makes a worker's slots count for the next `ttlMs`; repeat it in time. */
  announceWorker(worker: WorkerAnnouncement, ttlMs: number): Promise<void>;
  /** Nothing is reserved on the worker any more. Idempotent. */
  withdrawWorker(workerId: string): Promise<void>;
  /** Workers that are alive, by id; of one pool when it is named. */
  listWorkers(pool?: string): Promise<WorkerRecord[]>;
  /** Pools that have a worker or a job that waits, by name. */
  listPools(): Promise<PoolRecord[]>;
}
