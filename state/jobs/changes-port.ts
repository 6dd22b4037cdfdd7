/** The port of a user's changes to a job other than pause, resume and cancel: update, retry, list attempts, delete. */
import type { Attempt, Job, Page, ResolvedJobSpec } from '../../contracts/index.js';
import type { PageRequest } from '../core/paging.js';

export interface JobUpdate {
  /** The job as it was read; the update is refused when the job has changed since. */
  before: Job;
  spec: ResolvedJobSpec;
  requested_ranks: number;
  /** Names of the changed parts of the document. */
  changed: readonly string[];
}

/** A deleted job whose objects may still exist. */
export interface DeletedJob {
  id: string;
  project: string;
  /** True when its checkpoints and exports are removed as well. */
  artifacts: boolean;
}

/** A deleted checkpoint whose objects may still exist. */
export interface DeletedCheckpoint {
  id: string;
  job_id: string;
  project: string;
  prefix: string;
}

export interface JobChanges {
  /**
   * Replaces the job's document. Only priority, labels, ranks, limits and overrides may differ, and steps that replace epochs with what
   * follows from them.
   * @throws `version_mismatch` when the job has changed since `before`; `job_final` for changes of anything but labels
   */
  updateJob(update: JobUpdate): Promise<Job>;
  /**
   * Queues a failed job as its next attempt, with a fresh error budget.
   * @throws `invalid_state` for a job in any other state (so a repeat after a lost reply is refused with it); `dataset_not_found`,
   * `model_not_found`, `checkpoint_not_found` when one of its inputs is gone
   */
  retryJob(jobId: string, condition?: Condition): Promise<Job>;
  /** Lists attempts, newest first; `after` is an epoch. */
  listAttempts(jobId: string, page?: PageRequest): Promise<Page<Attempt>>;
  /**
   * Deletes the record of a job that has ended. The caller removes its objects; until `forgetDeletedJob`, `listDeletedJobs` includes the
   * job, so that another process removes them if the caller fails.
   * @throws `invalid_state` for a job that has not ended; `checkpoint_held`; `checkpoint_pinned` with `artifacts`
   */
  deleteJob(jobId: string, options: { artifacts: boolean } & Condition): Promise<void>;
  listDeletedJobs(): Promise<DeletedJob[]>;
  /** Idempotent. */
  forgetDeletedJob(jobId: string): Promise<void>;
  /** Lists deleted checkpoints whose objects may still exist, after `deleteCheckpoint`. */
  listDeletedCheckpoints(): Promise<DeletedCheckpoint[]>;
  /** Idempotent. */
  forgetDeletedCheckpoint(checkpointId: string): Promise<void>;
}

/** Precondition of a request: refused with `version_mismatch` unless the job's `state_version` is one of these. */
export interface Condition {
  if_versions?: readonly number[];
}
