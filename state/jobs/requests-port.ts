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
  /** `job_<ulid>`, made by the caller so that a repeated call cannot create two jobs. */
  id: string;
  /** Source of name, labels, pool and the initial number of ranks. */
  spec: ResolvedJobSpec;
  /** Trace of the request; goes into the queue entries of all attempts. */
  trace?: TraceHeaders;
  idempotency?: IdempotencyInput;
}

export interface CreateJobResult {
  /** The job in the form of the first reply. */
  job: Job;
  /** True when an earlier request with this idempotency key created the job. */
  replayed: boolean;
}

/** Filter of checkpoints; all conditions must hold. A page scans a bounded number of jobs: it may end before it is full. */
export interface CheckpointFilter extends PageRequest {
  project: string;
  id_prefix?: string;
}

export interface JobFilter extends NamedPageRequest {
  /** Any of these states. */
  state?: readonly JobState[];
  /** `key=value`; all labels must match. */
  label?: readonly string[];
  pool?: string;
  /** RFC 3339. */
  created_after?: string;
  created_before?: string;
}

export interface FoundCheckpoint {
  /** The job that wrote it. */
  job_id: string;
  /** Null after its removal. */
  checkpoint: Checkpoint | null;
}

/** The part of the store that the API uses: requests of users. */
export interface JobRequests {
  /**
   * Records a queued job and its first queue entry.
   * @throws `jobs_quota_exceeded`, `ranks_quota_exceeded`, `storage_quota_exceeded`; `idempotency_key_reused` when the key was used with
   * another body; `dataset_not_found`, `model_not_found`, `checkpoint_not_found`
   */
  createJob(input: CreateJobInput): Promise<CreateJobResult>;
  /**
   * Returns the job that an idempotency key has created, in the form of the first reply; null for none.
   * @throws `idempotency_key_reused` when the key was used with another body
   */
  findCreated(idempotency: IdempotencyInput): Promise<Job | null>;
  /** Returns the job, frozen; the same object as before while nothing has changed. Null when it does not exist. */
  getJob(jobId: string): Promise<Job | null>;

  /** Returns the trace of the request that created a job; null when the job or its trace does not exist. */
  getTrace(jobId: string): Promise<TraceHeaders | null>;
  /** Returns the project of a job; null when the job does not exist. */
  projectOfJob(jobId: string): Promise<string | null>;
  /** Lists the jobs of one project, newest first, each as `getJob` returns it. */
  listJobs(filter?: JobFilter): Promise<Page<Job>>;
  /** Pauses a job that no worker holds at once; a running job becomes `pausing`. Idempotent. */
  requestPause(jobId: string, condition?: Condition): Promise<Job>;
  /** Cancels a job that no worker holds at once; a running job becomes `cancelling`. Idempotent. */
  requestCancel(jobId: string, condition?: Condition): Promise<Job>;
  /**
   * Queues a paused job as its next attempt.
   * @throws `ranks_quota_exceeded`; `invalid_state` for a job in any other state (so a repeat after a lost reply is refused with it)
   */
  resumeJob(jobId: string, options?: { ranks?: number } & Condition): Promise<Job>;
  /**
   * Asks the worker that holds the job to save at the next step boundary and continue. One checkpoint answers all requests before it; the
   * next worker handles a request that the previous one could not.
   * @throws `invalid_state` for a job that no worker holds, or that is about to stop
   */
  requestCheckpoint(jobId: string, condition?: Condition): Promise<Job>;
  /** Exempts a checkpoint from the retention rule, or ends the exemption. Returns null when the checkpoint does not exist. */
  pinCheckpoint(checkpointId: string, pinned: boolean): Promise<Checkpoint | null>;
  /**
   * Deletes the record of a checkpoint. The caller deletes its objects; until `forgetDeletedCheckpoint`, `listDeletedCheckpoints`
   * includes it. Returns null when the checkpoint does not exist.
   * @throws `checkpoint_pinned`; `checkpoint_held`; `checkpoint_in_use` while it is the newest or the best of a job that has not ended
   */
  deleteCheckpoint(checkpointId: string): Promise<Checkpoint | null>;
  /**
   * Changes the number of ranks that the job should run on. A running job changes at its next step boundary, or, to grow, when enough
   * slots are free. Idempotent.
   * @throws `invalid_state` while it is cancelled, `ranks_quota_exceeded`
   */
  requestResize(jobId: string, ranks: number, condition?: Condition): Promise<Job>;
  listCheckpoints(jobId: string, page?: PageRequest): Promise<Page<Checkpoint>>;
  /** Lists the checkpoints of all jobs of a project, newest first. */
  listProjectCheckpoints(filter: CheckpointFilter): Promise<Page<Checkpoint>>;
  /** Returns a checkpoint of any job. Null when the id never existed, or its removal is no longer among those remembered. */
  findCheckpoint(checkpointId: string): Promise<FoundCheckpoint | null>;
}
