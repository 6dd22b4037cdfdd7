import type { Execution } from '../../contracts/execution.js';
import type { Job, JobState } from '../../contracts/index.js';
import type { Unsubscribe } from '../core/subscriptions.js';
import type { WorkerSlots } from '../pools/pools-port.js';

/** State that the user wants; the worker that holds the job acts on it at the next step boundary. */
export type Desired = 'run' | 'pause' | 'cancel';

/** Control state of a job, small enough to read at every heartbeat. */
export interface Control {
  desired: Desired;
  state: JobState;
  /** Number of the newest checkpoint request that no checkpoint has answered; 0 for none. */
  save_request: number;
  /** Ranks that the job should run on when enough slots are free. */
  requested_ranks: number;
  /** `documentHash` of the overrides in the job's document. */
  overrides: string;
  /** Preemption request: ranks to shrink to for a waiting job; 0: release all. Null: no request. */
  preemption_request: number | null;
  /** Ranks that the job has slots for: more than its generation runs when the scheduler let it grow. */
  held_ranks: number;
  /** True if slots on other workers are reserved for its next generation. */
  moves: boolean;
}

/** Reason why a claim was refused. Only `lease_held` is worth a retry. */
export type ClaimRefusal = 'job_not_found' | 'job_final' | 'attempt_superseded' | 'job_paused' | 'lease_held';

export type ClaimResult = GrantedClaim | RefusedClaim;

export interface RefusedClaim {
  granted: false;
  code: ClaimRefusal;
  retry_after_ms: number;
}

export interface GrantedClaim {
  granted: true;
  execution: Execution;
  job: Job;
  control: Control;
  error_count: number;
  /** Workers lost with the job since its newest checkpoint, or since a user last queued it. */
  lost_workers: number;
  /** The value of `lost_workers` at the previous claim. */
  lost_workers_before: number;
  /** Allocation of the job's ranks; empty for a claim without one. */
  placements: WorkerSlots[];
}

export interface ReleaseOptions {
  to: 'queued' | 'paused';
  reason?: string | null;
  /** Delay until the next attempt is due. Until then the job waits without a position in the queue. */
  delay_ms?: number;
  /**
   * The job was preempted, or its machine is about to end: counts against `retry.preemptions`. A job that was preempted more often is
   * paused (`preemption_limit`).
   */
  preempted?: boolean;
  /** Two workers that could not connect to each other: the job is not placed on both for `ms`. */
  avoid?: { pair: readonly [string, string]; ms: number };
}

export interface ClaimOptions {
  /** Claims the slots that the scheduler allocated to the job on this worker; otherwise the claim is a lease without slots. */
  allocated?: boolean;
  /** Price of one rank per hour; 0 when absent. */
  price_per_rank_hour?: number;
}

/** Leases and epochs of jobs. */
export interface JobAttempts {
  /**
   * Takes the lease on an attempt and begins a new epoch and execution. A queued job becomes `provisioning`; one whose worker was lost
   * becomes `recovering`; pending requests (`pausing`, `cancelling`) stay. The same worker may claim again at any time, another worker
   * only after the lease has expired.
   *
   * A claim with `allocated` holds the slots of the allocation as long as the lease. If the allocation is for another worker, or has
   * ended, the claim is refused with `attempt_superseded`.
   */
  claimAttempt(
    jobId: string,
    attempt: number,
    workerId: string,
    leaseMs: number,
    options?: ClaimOptions,
  ): Promise<ClaimResult>;
  /** Renews the lease. The reply carries the control state, so a lost message is caught up at the next heartbeat. */
  renewLease(jobId: string, execution: Execution, leaseMs: number): Promise<Control>;
  /**
   * Ends the epoch. `queued` makes the next attempt; `paused` waits for `resumeJob`. A pending pause turns `queued` into `paused`; with a
   * pending cancel the job is cancelled.
   */
  releaseAttempt(jobId: string, execution: Execution, options: ReleaseOptions): Promise<Job>;
  /**
   * Calls back with the current control state and after each change, also after a reconnect. Calls may repeat a value; none comes after
   * `Unsubscribe` has resolved.
   */
  watchControl(jobId: string, onControl: (control: Control) => void): Promise<Unsubscribe>;
  /** Ends the epochs of jobs whose lease expired more than `graceMs` ago, as `releaseAttempt` does. Any process may call it at any time. */
  requeueAbandoned(graceMs: number): Promise<string[]>;
}
