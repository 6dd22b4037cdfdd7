import { epochOf } from '../../contracts/execution.js';
import { isFinal, type JobState, ZerofleetError } from '../../contracts/index.js';
import { stepLine } from '../../formats/metric-files/step-lines.js';
import { type NamedValue, valuesOf } from '../../formats/metric-files/values.js';
import { nowText, type StoreContext } from '../core/context.js';
import { METRICS_PER_BLOCK } from '../streams/metric-blocks.js';
import type { JobExecution, MetricInput, TransitionPatch } from './execution-port.js';
import { finish, statesBefore } from './finish.js';
import { jobOf, type RecordReply } from './record.js';

/** Approximate number of metrics kept per job; older ones are dropped. */
export const METRICS_KEPT = 100_000;
/** Values that no curve shows: MetricName in the contract has none of them. */
const UNSHOWN = /^(seconds|trust_ratios)\//;
/** Approximate number of log lines kept per job; older ones are dropped. */
export const LOGS_KEPT = 10_000;

/** Working states: a transition among these yields to a pending pause or cancel. */
const WORKING_STATES: JobState[] = ['provisioning', 'starting', 'running', 'recovering'];

export function jobExecution(context: StoreContext): JobExecution {
  const { commands } = context;
  return {
    async transition(jobId, execution, to, { reason, patch } = {}) {
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

    async finishJob(jobId, execution, state, options = {}) {
      const job = await finish(context, jobId, execution, state, options);
      if (!job) throw new ZerofleetError('invalid_state', `a worker holds ${jobId}`);
      return job;
    },

    async report(jobId, execution, metrics, progress, { batch } = {}) {
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

    async appendLogs(jobId, execution, lines, { batch } = {}) {
      const [seq] = await commands.run('append_logs', {
        job_id: jobId,
        execution,
        lines: lines.map((line) => JSON.stringify({ ...line, epoch: epochOf(execution) })),
        batch,
        keep: LOGS_KEPT,
      });
      return Number(seq);
    },

    async appendEvent(jobId, execution, { type, data, at, root_cause }) {
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

    async commitCheckpoint(jobId, execution, checkpoint, { save_request } = {}) {
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

    async rejectCheckpoint(jobId, execution, checkpointId) {
      await commands.run('reject_checkpoint', {
        job_id: jobId,
        execution,
        checkpoint_id: checkpointId,
        at: nowText(),
      });
    },

    async removeCheckpoint(jobId, execution, checkpointId) {
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
