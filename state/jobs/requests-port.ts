import type {
  Checkpoint,
  Job,
  JobState,
  Page,
  ResolvedJobSpec,
  TraceHeaders,
} from '../../contracts/index.js';
import type { NamedPageRequest, PageRequest } from '../core/paging.js';
import type { IdempotencyInput } from '../repeats/repeats-port.js';
import type { Condition } from './changes-port.js';

export interface CreateJobInput {
  /** `job_<ulid>`, made by the caller so that a repeated call cannot make two jobs. */
  id: string;
  /** Name, labels, pool and the first number of ranks are taken from it. */
  spec: ResolvedJobSpec;
  /** Of the request; goes into the queue entries of all attempts. */
  trace?: TraceHeaders;
  idempotency?: IdempotencyInput;
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

export interface FoundCheckpoint {
  /** The job that made it. */
  job_id: string;
  /** Null once it was removed. */
  checkpoint: Checkpoint | null;
}

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
