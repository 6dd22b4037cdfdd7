import { type Execution, epochOf } from '../../contracts/execution.js';
import {
  type Checkpoint,
  type FinalJobState,
  isFinal,
  type Job,
  type JobLog,
  type JobMetric,
  type JobState,
  type ReportedProgress,
  ZerofleetError,
} from '../../contracts/index.js';
import { stepLine } from '../../formats/metric-files/step-lines.js';
import { type NamedValue, valuesOf } from '../../formats/metric-files/values.js';
import { nowText, type StoreContext } from '../core/context.js';
import { METRICS_PER_BLOCK } from '../streams/metric-blocks.js';
import { type FinishOptions, finish, statesBefore } from './finish.js';
import { jobOf, type RecordReply } from './record.js';

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

/** Approximate number of metrics kept per job; older ones are dropped. */
export const METRICS_KEPT = 100_000;
/** Values that no curve shows: MetricName in the contract has none of them. */
const UNSHOWN = /^(seconds|trust_ratios)\/|^system\/\w+\/[1-9]/;
/** Approximate number of log lines kept per job; older ones are dropped. */
export const LOGS_KEPT = 10_000;

/** Working states: a transition among these yields to a pending pause or cancel. */
const WORKING_STATES: JobState[] = ['provisioning', 'starting', 'running', 'recovering'];

/** Writes of the worker that holds a job; every write is fenced. */
export type JobExecution = ReturnType<typeof jobExecution>;

export function jobExecution(context: StoreContext) {
  const { commands } = context;
  return {
    /**
     * Moves the job to a state that is not final. A move to the present state only sets reason and patch.
     * While a pause or cancel is pending, moves among the working states (`provisioning` … `recovering`)
     * leave the state unchanged: the request takes precedence.
     * @returns the job afterwards
     * @throws `invalid_transition`, `stale_epoch`
     */
    async transition(
      jobId: string,
      execution: Execution,
      to: Exclude<JobState, FinalJobState>,
      { reason, patch }: TransitionOptions = {},
    ): Promise<Job> {
      if (isFinal(to)) throw new ZerofleetError('invalid_transition', `only finishJob may set ${to}`);
      const reply = await commands.run('transition', {
        job_id: jobId,
        execution,
        to,
        from: statesBefore(to),
        working: WORKING_STATES,
        reason: reason ?? undefined,
        patch: patchFields(patch ?? {}),
        at: nowText(),
      });
      return jobOf(reply as RecordReply);
    },

    /**
     * Sets the final state. With `execution: null` only a job that no worker holds can be finished. Repeating
     * it with the same state returns the job.
     * @throws `invalid_transition` for another final state or a transition outside the state table,
     *   `stale_epoch`
     */
    async finishJob(
      jobId: string,
      execution: Execution | null,
      state: FinalJobState,
      options: FinishOptions = {},
    ): Promise<Job> {
      const job = await finish(context, jobId, execution, state, options);
      if (!job) throw new ZerofleetError('invalid_state', `a worker holds ${jobId}`);
      return job;
    },

    ...streamWrites(context),
    ...checkpointWrites(context),
  };
}

function streamWrites({ commands }: StoreContext) {
  return {
    /**
     * Appends metrics and sets the progress. `batch` counts 1, 2, 3 … within an execution: a batch that was
     * already written is skipped, so a repeated call adds nothing.
     * @returns the last sequence number of the job's stream
     */
    async report(
      jobId: string,
      execution: Execution,
      metrics: readonly MetricInput[],
      progress: ReportedProgress | null,
      { batch }: { batch?: number } = {},
    ): Promise<number> {
      const at = nowText();
      const [seq] = await commands.run('report', {
        job_id: jobId,
        execution,
        metrics: metrics.map((metric) => {
          const text = metricText(metric, epochOf(execution), at);
          return { step: metric.step, text, values: valueTexts(metric), line_bytes: stepLine(metric).length };
        }),
        progress: progress ? JSON.stringify(progress) : undefined,
        batch,
        keep: METRICS_KEPT,
        block: METRICS_PER_BLOCK,
        at,
      });
      return Number(seq);
    },

    /**
     * Appends log lines; the oldest are dropped above the limit. `batch` as for `report`, numbered
     * separately.
     * @returns the last sequence number of the job's stream
     */
    async appendLogs(
      jobId: string,
      execution: Execution,
      lines: readonly LogInput[],
      { batch }: { batch?: number } = {},
    ): Promise<number> {
      const [seq] = await commands.run('append_logs', {
        job_id: jobId,
        execution,
        lines: lines.map((line) => JSON.stringify({ ...line, epoch: epochOf(execution) })),
        batch,
        keep: LOGS_KEPT,
      });
      return Number(seq);
    },

    /** @returns the event's sequence number. Not deduplicated: a repeated call appends again. */
    async appendEvent(
      jobId: string,
      execution: Execution,
      { type, data, at, root_cause }: EventInput,
    ): Promise<number> {
      const [seq] = await commands.run('append_event', {
        job_id: jobId,
        execution,
        type,
        data: JSON.stringify(data ?? {}),
        at: at ?? nowText(),
        root_cause,
      });
      return Number(seq);
    },
  };
}

function checkpointWrites({ commands }: StoreContext) {
  return {
    /**
     * Makes a committed checkpoint the job's latest. A new checkpoint gets its event and resets the error
     * budget. A checkpoint that is known by its id only becomes the latest: the call is repeated, or training
     * falls back to an older checkpoint. The commit answers checkpoint requests up to number `save_request`.
     * @throws `checkpoint_not_found` for a checkpoint that a user has deleted
     */
    async commitCheckpoint(
      jobId: string,
      execution: Execution,
      checkpoint: Checkpoint,
      { save_request }: { save_request?: number } = {},
    ): Promise<void> {
      const { id, step, state_digest } = checkpoint;
      await commands.run('commit_checkpoint', {
        job_id: jobId,
        execution,
        checkpoint_id: id,
        save_request,
        checkpoint: JSON.stringify(checkpoint),
        ref: JSON.stringify({ id, step, state_digest }),
        at: nowText(),
      });
    },

    /**
     * Marks a checkpoint as damaged: it never becomes the job's latest again. Unknown checkpoints are
     * ignored.
     */
    async rejectCheckpoint(jobId: string, execution: Execution, checkpointId: string): Promise<void> {
      await commands.run('reject_checkpoint', {
        job_id: jobId,
        execution,
        checkpoint_id: checkpointId,
        at: nowText(),
      });
    },

    /**
     * Removes a checkpoint's record. Returns false when it was unknown; throws `checkpoint_pinned`,
     * `checkpoint_held` while it is in use.
     */
    async removeCheckpoint(jobId: string, execution: Execution, checkpointId: string): Promise<boolean> {
      const [removed] = await commands.run('remove_checkpoint', {
        job_id: jobId,
        execution,
        checkpoint_id: checkpointId,
        at: nowText(),
      });
      return removed === '1';
    },
  };
}

function patchFields(patch: TransitionPatch): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [name, value] of Object.entries(patch)) {
    if (value !== undefined) fields[name] = value === null ? '' : String(value);
  }
  return fields;
}

/** Finite values whose extremes a curve shows, as exact texts. */
function valueTexts(metric: MetricInput): Record<string, string> {
  const isShown = ([name, value]: NamedValue) => value !== null && !UNSHOWN.test(name);
  return Object.fromEntries(
    valuesOf(metric)
      .filter(isShown)
      .map(([name, value]) => [name, String(value)]),
  );
}

function metricText(metric: MetricInput, epoch: number, now: string): string {
  return JSON.stringify({ ...metric, at: metric.at ?? now, epoch });
}
