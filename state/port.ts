/**
 * The job store port: everything that api and worker agree on lives here and nowhere else. The queue (BullMQ)
 * only says "attempt k of job j is due"; objects hold the bytes.
 *
 * Atomic: each method that writes is one script or transaction, so a crash leaves it done or not done. Creation writes
 * the record, the idempotency entry and the outbox entry together. Stream sequence numbers are given inside
 * the same script as the entry: per job they count 1, 2, 3 … without gaps, over events, metrics and log lines together.
 *
 * Fenced: every write of a worker carries the execution that `claimAttempt` gave it. As soon as another claim, a
 * release or a final state ends it, the write is refused with `stale_epoch` and changes nothing.
 *
 * Final: `finishJob` (and through it `requestCancel` of a job that nobody runs) sets a final state, and the end of an epoch of a job
 * that is cancelling;
 * nothing changes the state of a job afterwards, but for `retryJob` of one that failed.
 *
 * Every method rejects with a `ZerofleetError`; `job_store_unavailable` when Redis cannot be reached in time.
 * Writes are safe to repeat after that error unless said otherwise.
 */
import type { Execution } from '../contracts/execution.js';
import type { Checkpoint, Job, JobState, Page, ResolvedJobSpec, TraceHeaders } from '../contracts/index.js';
import type { AuditLog } from './access/audit-port.js';
import type { Projects } from './access/projects-port.js';
import type { JobChanges } from './jobs/changes-port.js';
import type { JobExecution } from './jobs/execution-port.js';
import type { CheckpointHolds } from './jobs/holds-port.js';
import type { Place, PoolPlaces } from './pools/pools-port.js';
import type { Scaling } from './pools/scaling-port.js';
import type { Scheduling } from './pools/scheduling-port.js';
import type { WorldRendezvous } from './pools/worlds-port.js';
import type { ApiKeys, DatasetRecords, ModelRecords } from './records/records-port.js';
import type { SweepGuard } from './records/sweep-port.js';
import type { UploadSpace } from './records/uploads-port.js';
import type { IdempotencyEntry } from './repeats/idempotency.js';
import type { RequestRepeats } from './repeats/repeats-port.js';
import type { JobStreams } from './streams/streams-port.js';
import type { Webhooks } from './webhooks/webhooks-port.js';

export type * from './access/audit-port.js';
export type * from './access/projects-port.js';
export type * from './jobs/changes-port.js';
export type * from './jobs/execution-port.js';
export type * from './jobs/holds-port.js';
export type * from './pools/scaling-port.js';
export type * from './pools/scheduling-port.js';
export type * from './records/records-port.js';
export type * from './records/sweep-port.js';
export type * from './records/uploads-port.js';
export type * from './repeats/repeats-port.js';
export type * from './streams/streams-port.js';
export type * from './webhooks/webhooks-port.js';

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

export interface CreateJobInput {
  /** `job_<ulid>`, made by the caller so that a repeated call cannot make two jobs. */
  id: string;
  /** Name, labels, pool and the first number of ranks are taken from it. */
  spec: ResolvedJobSpec;
  /** Of the request; goes into the queue entries of all attempts. */
  trace?: TraceHeaders;
  idempotency?: IdempotencyInput;
}

export interface IdempotencyInput {
  /** Whose key it is and for which route: the same text of another owner is another key. */
  scope: string;
  key: string;
  /** SHA-256 of the request body, hex. */
  body_hash: string;
}

export interface CreateJobResult {
  /** The job as it was answered the first time. */
  job: Job;
  /** True when an earlier request with this idempotency key made it. */
  replayed: boolean;
}

/** Those that pass all of it. A page looks at a bounded number of jobs: it may end before it is full. */
export interface CheckpointFilter extends PageRequest {
  project: string;
  id_prefix?: string;
}

export interface JobFilter extends NamedPageRequest {
  /** Of several, one of them. */
  state?: readonly JobState[];
  /** `key=value`; of several, all. */
  label?: readonly string[];
  pool?: string;
  /** RFC 3339. */
  created_after?: string;
  created_before?: string;
}

/** With it a request is refused with `version_mismatch` unless the job's `state_version` is one of these. */
export interface Condition {
  if_versions?: readonly number[];
}

/** Which part of a list: entries after the one with this id, at most `limit` (1..100, default 20). */
export interface PageRequest {
  after?: string;
  limit?: number;
}

/** Of what belongs to one project; 'default' when none is named. */
export interface ProjectPageRequest extends PageRequest {
  project?: string;
}

export interface NamedPageRequest extends ProjectPageRequest {
  /** Exactly this one. */
  name?: string;
  /** What their ids begin with. */
  id_prefix?: string;
}

export interface FoundCheckpoint {
  /** The job that made it. */
  job_id: string;
  /** Null once it was removed. */
  checkpoint: Checkpoint | null;
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

/** Ends a subscription; resolves when no more callbacks will come. Idempotent. */
export type Unsubscribe = () => Promise<void>;

/** The part of the store that the API uses: what people ask for. */
export interface JobRequests {
  /**
   * Records a queued job and its first queue entry.
   * @throws `jobs_quota_exceeded`, `ranks_quota_exceeded`, `storage_quota_exceeded`; `idempotency_key_reused` when the key was used with another body, `dataset_not_found`, `model_not_found`,
   *   `checkpoint_not_found`
   */
  createJob(input: CreateJobInput): Promise<CreateJobResult>;
  /**
   * The job that an idempotency key has made, as it was answered then; null for none.
   * @throws `idempotency_key_reused` when it was made with another body
   */
  findCreated(idempotency: IdempotencyInput): Promise<Job | null>;
  /** Frozen, and the same object as before while nothing has changed. Null when there is no such job. */
  getJob(jobId: string): Promise<Job | null>;

  /** Of the request that created a job; null when there is no such job, or it came without. */
  getTrace(jobId: string): Promise<TraceHeaders | null>;
  /** The project that a job belongs to. Null when there is no such job. */
  projectOfJob(jobId: string): Promise<string | null>;
  /** Those of one project, newest first, each as `getJob` has it. */
  listJobs(filter?: JobFilter): Promise<Page<Job>>;
  /** A job that nobody runs pauses at once; a running one becomes `pausing`. Asking twice is asking once. */
  requestPause(jobId: string, condition?: Condition): Promise<Job>;
  /**
   * A job that nobody runs is cancelled at once; a running one becomes `cancelling`. Asking twice is asking
   * once.
   */
  requestCancel(jobId: string, condition?: Condition): Promise<Job>;
  /**
   * Queues a paused job as its next attempt.
   * @throws `ranks_quota_exceeded`; `invalid_state` for a job in any other state (so repeating it after a lost reply is answered with
   * that)
   */
  resumeJob(jobId: string, options?: { ranks?: number } & Condition): Promise<Job>;
  /**
   * Asks the worker that holds the job to save at the next step boundary and go on. Several requests before the save are answered by
   * one checkpoint; one that a worker could not answer any more is carried out by the next.
   * @throws `invalid_state` for a job that nobody runs, or that is about to stop
   */
  requestCheckpoint(jobId: string, condition?: Condition): Promise<Job>;
  /**
   * Keeps a checkpoint from the retention rule, or no longer. Null when there is none of this id.
   */
  pinCheckpoint(checkpointId: string, pinned: boolean): Promise<Checkpoint | null>;
  /**
   * Forgets a checkpoint; its objects are the caller's to delete, and until `forgetDeletedCheckpoint` it is among
   * `listDeletedCheckpoints`. Null when there is none of this id.
   * @throws `checkpoint_pinned`; `checkpoint_held`; `checkpoint_in_use` while it is the newest of a job that has not ended
   */
  deleteCheckpoint(checkpointId: string): Promise<Checkpoint | null>;
  /**
   * Changes the ranks that the job should run on. A running job goes on with them from its next step boundary, or, when
   * they are more, from when there are slots for them. Asking twice is asking once.
   * @throws `invalid_state` while it is cancelled, `ranks_quota_exceeded`
   */
  requestResize(jobId: string, ranks: number, condition?: Condition): Promise<Job>;
  listCheckpoints(jobId: string, page?: PageRequest): Promise<Page<Checkpoint>>;
  /** Those of all jobs of a project, newest first. */
  listProjectCheckpoints(filter: CheckpointFilter): Promise<Page<Checkpoint>>;
  /** A checkpoint of any job. Null when there never was one of this id, or so many were removed since that it is forgotten. */
  findCheckpoint(checkpointId: string): Promise<FoundCheckpoint | null>;
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

export interface WaitLimits {
  /**
   * Pauses or cancels jobs that have waited for slots longer than their `limits.max_wait`. Any process may call it, at any time.
   * @returns the ids of those that it stopped
   */
  expireWaiting(): Promise<string[]>;
}

/** A job as it is put back into a store that lost it. */
export interface RestoredJob {
  /** Its epoch is one that no worker ever had, so that whoever still runs is fenced. */
  job: Job;
  /** Oldest first. */
  checkpoints: Checkpoint[];
  /** As `putSpec` kept it; null when there was no key or it has expired. */
  idempotency: IdempotencyEntry | null;
}

/** Putting records back that Redis has lost. */
export interface JobRestore {
  /** Until `endRestore`, or for an hour, no quota of storage refuses a record, and nothing is swept. */
  beginRestore(): Promise<void>;
  /** Puts a job back; a queued one gets its queue entry. False when it is there or being deleted, and then nothing is changed. */
  restoreJob(restored: RestoredJob): Promise<boolean>;
  endRestore(): Promise<void>;
}

/** The whole port; `openJobStore` (job-store.ts) gives one on Redis. */
export interface JobStorePort
  extends JobRequests,
    JobChanges,
    JobAttempts,
    JobExecution,
    JobStreams,
    DatasetRecords,
    UploadSpace,
    ModelRecords,
    PoolPlaces,
    WorldRendezvous,
    ApiKeys,
    AuditLog,
    Projects,
    JobRestore,
    CheckpointHolds,
    RequestRepeats,
    Scaling,
    Scheduling,
    SweepGuard,
    WaitLimits,
    Webhooks {
  /** Unix time in ms by Redis' clock, which is the same for all programs. */
  now(): Promise<number>;
  /** Proves that Redis answers and accepts writes; used by readiness checks. */
  check(): Promise<void>;
  /** Frees connections. Idempotent. */
  close(): Promise<void>;
}
