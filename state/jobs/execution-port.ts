/** The port of the worker that holds a job. */
import type { Execution } from '../../contracts/execution.js';
import type {
  Checkpoint,
  FinalJobState,
  Job,
  JobExport,
  JobFailure,
  JobLog,
  JobMetric,
  JobState,
  ReportedProgress,
} from '../../contracts/index.js';

/** Fields that a worker may set with a transition. */
export interface TransitionPatch {
  world_size?: number | null;
  lost_work_seconds?: number;
  /** Errors since the last committed checkpoint; `commitCheckpoint` resets it to 0. */
  error_count?: number;
}

export interface TransitionOptions {
  reason?: string | null;
  patch?: TransitionPatch;
}

export interface FinishOptions {
  reason?: string | null;
  failure?: JobFailure | null;
  export?: JobExport | null;
}

/** A metric before the store assigns its stream position; `at` defaults to now. */
export type MetricInput = Omit<JobMetric, 'seq' | 'position' | 'kind' | 'epoch' | 'at'> & { at?: string };

/** A log line before the store assigns its stream position. */
export type LogInput = Omit<JobLog, 'seq' | 'position' | 'kind' | 'epoch'>;

export interface EventInput {
  type: string;
  data?: Record<string, unknown>;
  at?: string;
  /** The event names the cause of the attempt's failure, past or imminent; `listAttempts` shows it. */
  root_cause?: boolean;
}

/** Writes of the worker that holds a job; every write is fenced. */
export interface JobExecution {
  /**
   * Moves the job to a state that is not final. A move to the present state only sets reason and patch. While a pause or cancel is
   * pending, moves among the working states (`provisioning` … `recovering`) leave the state unchanged: the request takes precedence.
   * @returns the job afterwards
   * @throws `invalid_transition`, `stale_epoch`
   */
  transition(
    jobId: string,
    execution: Execution,
    to: Exclude<JobState, FinalJobState>,
    options?: TransitionOptions,
  ): Promise<Job>;
  /**
   * Sets the final state. With `execution: null` only a job that no worker holds can be finished. Repeating it with the same state
   * returns the job.
   * @throws `invalid_transition` for another final state or a transition outside the state table, `stale_epoch`
   */
  finishJob(
    jobId: string,
    execution: Execution | null,
    state: FinalJobState,
    options?: FinishOptions,
  ): Promise<Job>;
  /**
   * Appends metrics and sets the progress. `batch` counts 1, 2, 3 … within an execution: a batch that was already written is skipped, so
   * a repeated call adds nothing.
   * @returns the last sequence number of the job's stream
   */
  report(
    jobId: string,
    execution: Execution,
    metrics: readonly MetricInput[],
    progress: ReportedProgress | null,
    options?: { batch?: number },
  ): Promise<number>;
  /**
   * Appends log lines; the oldest are dropped above the limit. `batch` as for `report`, numbered separately.
   * @returns the last sequence number of the job's stream
   */
  appendLogs(
    jobId: string,
    execution: Execution,
    lines: readonly LogInput[],
    options?: { batch?: number },
  ): Promise<number>;
  /** @returns the event's sequence number. Not deduplicated: a repeated call appends again. */
  appendEvent(jobId: string, execution: Execution, event: EventInput): Promise<number>;
  /**
   * Makes a committed checkpoint the job's latest. A new checkpoint gets its event and resets the error budget; one that is known by its
   * id (a repeated call, or training falls back to an older one) only becomes the latest. It answers checkpoint requests up to number
   * `save_request`.
   * @throws `checkpoint_not_found` for a checkpoint that a user has deleted
   */
  commitCheckpoint(
    jobId: string,
    execution: Execution,
    checkpoint: Checkpoint,
    options?: { save_request?: number },
  ): Promise<void>;
  /** Marks a checkpoint as damaged: it never becomes the job's latest again. Unknown checkpoints are ignored. */
  rejectCheckpoint(jobId: string, execution: Execution, checkpointId: string): Promise<void>;
  /** Removes a checkpoint's record. Returns false when it was unknown; throws `checkpoint_pinned`, `checkpoint_held` while it is in use. */
  removeCheckpoint(jobId: string, execution: Execution, checkpointId: string): Promise<boolean>;
}
