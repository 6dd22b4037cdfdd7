/** The port of what people do to a job beside asking it to stop or go on: change it, try it again, see its attempts, delete it. */
import type { Attempt, Job, Page, ResolvedJobSpec } from '../../contracts/index.js';
import type { PageRequest } from '../core/paging.js';

export interface JobUpdate {
  /** The job as it was read; the update is refused when it has changed since. */
  before: Job;
  spec: ResolvedJobSpec;
  requested_ranks: number;
  /** The names of the parts of the document that differ. */
  changed: readonly string[];
}

/** A job whose record is gone while its objects may still be there. */
export interface DeletedJob {
  id: string;
  project: string;
  /** Whether its checkpoints and exports are removed as well. */
  artifacts: boolean;
}

/** A checkpoint whose record is gone while its objects may still be there. */
export interface DeletedCheckpoint {
  id: string;
  job_id: string;
  project: string;
  prefix: string;
}

export interface JobChanges {
  /**
   * Puts another document in place of the job's; it differs in priority, labels, ranks, limits and overrides only.
   * @throws `version_mismatch` when the job is not `before` any more; `job_final` for anything but labels
   */
  updateJob(update: JobUpdate): Promise<Job>;
  /**
   * Queues a failed job as its next attempt, with a fresh error budget.
   * @throws `invalid_state` for a job in any other state (so repeating it after a lost reply is answered with that);
   *   `dataset_not_found`, `model_not_found`, `checkpoint_not_found` when what it reads is gone
   */
  retryJob(jobId: string, condition?: Condition): Promise<Job>;
  /** Newest first; `after` is an epoch. */
  listAttempts(jobId: string, page?: PageRequest): Promise<Page<Attempt>>;
  /**
   * Forgets a job that has ended. What is in the object store is the caller's to remove; until `forgetDeletedJob` the job is
   * among `listDeletedJobs`, so that somebody else does it if the caller can't.
   * @throws `invalid_state` for a job that has not ended; `checkpoint_held`; `checkpoint_pinned` with `artifacts`
   */
  deleteJob(jobId: string, options: { artifacts: boolean } & Condition): Promise<void>;
  listDeletedJobs(): Promise<DeletedJob[]>;
  /** Idempotent. */
  forgetDeletedJob(jobId: string): Promise<void>;
  /** As for jobs, after `deleteCheckpoint`. */
  listDeletedCheckpoints(): Promise<DeletedCheckpoint[]>;
  /** Idempotent. */
  forgetDeletedCheckpoint(checkpointId: string): Promise<void>;
}

/** With it a request is refused with `version_mismatch` unless the job's `state_version` is one of these. */
export interface Condition {
  if_versions?: readonly number[];
}
