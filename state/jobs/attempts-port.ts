import type { Execution } from '../../contracts/execution.js';
import type { Job, JobState } from '../../contracts/index.js';
import type { Unsubscribe } from '../core/subscriptions.js';
import type { Place } from '../pools/pools-port.js';

/** What people want of the job; the worker that holds it acts on it at the next step boundary. */
export type Desired = 'run' | 'pause' | 'cancel';

/** The answer to "what should I do now", small enough to read at every heartbeat. */
export interface Control {
  desired: Desired;
  state: JobState;
  /** Number of the newest request to save and go on that no checkpoint has answered yet; 0 for none. */
  save_request: number;
  /** Ranks that the job should run on when there are slots for them. */
  requested_ranks: number;
  /** `documentHash` of the overrides of the job's document. */
  overrides: string;
  /** Ranks that the pool asks it to go down to, for a job that waits; 0: to leave. Null: it asks nothing. */
  ask: number | null;
  /** Ranks that it has slots for: more than its generation has when the scheduler let it grow. */
  held_ranks: number;
}

/** Why an attempt was not granted. Only `lease_held` is worth another try. */
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
  /** Workers that were lost with the job since its newest checkpoint, or since a person queued it. */
  lost_workers: number;
  /** As many as the claim before knew of. */
  lost_workers_before: number;
  /** Empty for a claim without an allocation. */
  places: Place[];
}

export interface ReleaseOptions {
  to: 'queued' | 'paused';
  reason?: string | null;
  /** The next attempt is due only then. Until then the job waits, but takes no place in the order. */
  delay_ms?: number;
  /**
   * The job's places were wanted, or its machine goes: counts against `retry.preemptions`, and a job that was preempted more
   * often is paused (`preemption_limit`).
   */
  preempted?: boolean;
  /** Two workers that could not reach each other: for so long the job is not placed on both. */
  avoid?: { pair: readonly [string, string]; ms: number };
}

export interface ClaimOptions {
  /** With the slots that the scheduler allocated to the job on this worker; a claim without them is a lease alone. */
  allocated?: boolean;
  /** What each place costs in an hour; nothing when absent. */
  price_per_rank_hour?: number;
}

/** Who works on a job: leases and epochs. */
export interface JobAttempts {
  /**
   * Takes the lease on an attempt and begins a new epoch and execution. A queued job becomes `provisioning`; one whose
   * worker was lost becomes `recovering`; pending requests (`pausing`, `cancelling`) stay. The same worker
   * may claim again at any time, another one only after the lease ran out.
   *
   * With `allocated` the job holds the slots of its allocation as long as the lease; where that is for another worker, or has ended, the
   * refusal is `attempt_superseded`.
   */
  claimAttempt(
    jobId: string,
    attempt: number,
    workerId: string,
    leaseMs: number,
    options?: ClaimOptions,
  ): Promise<ClaimResult>;
  /** Keeps the lease; the reply carries what people want now, so that no lost message stays lost. */
  renewLease(jobId: string, execution: Execution, leaseMs: number): Promise<Control>;
  /**
   * Ends the epoch. `queued` makes the next attempt; `paused` waits for `resumeJob`. A pending pause turns `queued` into
   * `paused`; with a pending cancel the job is cancelled.
   */
  releaseAttempt(jobId: string, execution: Execution, options: ReleaseOptions): Promise<Job>;
  /**
   * Calls back with the present control and after each change, also after the connection was lost and came
   * back. Calls may repeat a value; they never come after `Unsubscribe` resolved.
   */
  watchControl(jobId: string, onControl: (control: Control) => void): Promise<Unsubscribe>;
  /**
   * Ends the epochs of jobs whose lease ran out more than `graceMs` ago, as `releaseAttempt` does. Any process may call it, at any
   * time.
   */
  requeueAbandoned(graceMs: number): Promise<string[]>;
}
