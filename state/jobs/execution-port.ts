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
  JobProgress,
  JobState,
} from '../../contracts/index.js';

/** Fields that a worker may set while it changes or keeps the state. */
export interface TransitionPatch {
  world_size?: number | null;
  lost_work_seconds?: number;
  /** Errors used up since the last commit of a checkpoint; `commitCheckpoint` sets it to 0. */
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

/** A metric before the store gave it its place in the stream; `at` is now unless given. */
export type MetricInput = Omit<JobMetric, 'seq' | 'position' | 'kind' | 'epoch' | 'at'> & { at?: string };

/** A log line before the store gave it its place in the stream. */
export type LogInput = Omit<JobLog, 'seq' | 'position' | 'kind' | 'epoch'>;

export interface EventInput {
  type: string;
  data?: Record<string, unknown>;
  at?: string;
  /** It tells whose error has ended the attempt, or will: `listAttempts` shows it. */
  blame?: boolean;
}

/** What the worker that holds a job writes about it; every write is fenced. */
export interface JobExecution {
  /**
   * Moves the job to a state that is not final. To its present state: only reason and patch are set. While a
   * pause or cancel is pending, moves among the working states (`provisioning` … `recovering`) leave the
   * state alone: the request outranks them.
   * @returns the job as it is afterwards
   * @throws `invalid_transition`, `stale_epoch`
   */
  transition(
    jobId: string,
    execution: Execution,
    to: Exclude<JobState, FinalJobState>,
    options?: TransitionOptions,
  ): Promise<Job>;
  /**
   * Sets the final state. With `execution: null` only a job that nobody runs can be finished. Repeating it with
   * the same state returns the job.
   * @throws `invalid_transition` for another final state or an edge that the state table does not have,
   * `stale_epoch`
   */
  finishJob(
    jobId: string,
    execution: Execution | null,
    state: FinalJobState,
    options?: FinishOptions,
  ): Promise<Job>;
  /**
   * Appends metrics and sets the progress. `batch` counts 1, 2, 3 … within an execution: one that was written
   * already is passed over, so that a repeated call adds nothing.
   * @returns the last sequence number of the job's stream
   */
  report(
    jobId: string,
    execution: Execution,
    metrics: readonly MetricInput[],
    progress: JobProgress | null,
    options?: { batch?: number },
  ): Promise<number>;
  /**
   * Appends log lines; the oldest go when the job has too many. `batch` as for `report`, with numbers of its own.
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
   * Makes a committed checkpoint the job's latest. A new one gets its event and gives the error budget back;
   * one that is known by its id (the call is repeated, or training falls back to an older one) only becomes
   * the latest. It answers requests to save up to number `save_request`.
   * @throws `checkpoint_not_found` for one that a person has deleted
   */
  commitCheckpoint(
    jobId: string,
    execution: Execution,
    checkpoint: Checkpoint,
    options?: { save_request?: number },
  ): Promise<void>;
  /** Marks a checkpoint as damaged: it is never the job's latest again. Nothing happens to one that is unknown. */
  rejectCheckpoint(jobId: string, execution: Execution, checkpointId: string): Promise<void>;
  /** Forgets a checkpoint. False when it was unknown; `checkpoint_pinned`, `checkpoint_held` when somebody keeps it. */
  removeCheckpoint(jobId: string, execution: Execution, checkpointId: string): Promise<boolean>;
}
