/** Events and metrics of a job in the shape of `fine_tuning.job.event`. */
import type { FineTuningJobEvent } from 'openai/resources/fine-tuning/jobs/jobs';
import {
  type Job,
  type JobEvent,
  type JobMetric,
  type Page,
  ZerofleetError,
} from '../../../contracts/index.js';
import type { JobStreams } from '../../../state/index.js';
import { SSE_HEARTBEAT } from '../../http/sse.js';
import type { Followed } from '../../jobs/follow.js';
import { VALIDATION_FILE } from '../labels.js';
import { type PageQuery, secondsOf, unknownCursor } from '../pages.js';

/** An id is the position of an entry in the job's stream. */
const ID = /^ftevent-([0-9a-f]{8}-[1-9][0-9]{0,14}-[0-9a-f]{1,13})$/;

const LEVELS: Readonly<Record<string, FineTuningJobEvent['level']>> = {
  'rank.lost': 'warn',
  'node.lost': 'warn',
  'checkpoint.skipped': 'warn',
};

/**
 * Reads a page of a job's events and metrics, newest first; `after` is the id of an event. @throws Refusal for an
 * unknown one
 */
export async function eventsPage(
  store: Pick<JobStreams, 'readNewest'>,
  { id: jobId, spec }: Job,
  { after, limit }: PageQuery,
): Promise<Page<FineTuningJobEvent>> {
  const before = after === undefined ? null : ID.exec(after)?.[1];
  if (before === undefined) throw unknownCursor(after);
  const entries = await store.readNewest(jobId, before, limit + 1, ['event', 'metric']).catch((error) => {
    const isLost = error instanceof ZerofleetError && error.code === 'position_lost';
    throw isLost ? unknownCursor(after) : error;
  });
  const data = entries.slice(0, limit).flatMap((entry) => {
    if (entry.kind === 'event') return [ofEvent(jobId, entry)];
    return entry.kind === 'metric' ? [ofMetric(entry, spec.train.steps)] : [];
  });
  return { data, next_cursor: entries.length > limit ? (data.at(-1)?.id ?? null) : null };
}

/** Yields the server-sent events of a job, from its beginning until its end. */
export async function* messagesOf(
  { id, spec }: Job,
  followed: AsyncIterable<Followed>,
): AsyncGenerator<string> {
  const message = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
  // Written immediately, so that the headers are sent before the first entry.
  yield SSE_HEARTBEAT;
  for await (const item of followed) {
    if (item.kind === 'quiet') yield SSE_HEARTBEAT;
    if (item.kind === 'end') yield 'data: [DONE]\n\n';
    if (item.kind !== 'entries') continue;
    for (const entry of item.entries) {
      if (entry.kind === 'event') yield message(ofEvent(id, entry));
      else if (entry.kind === 'metric') yield message(ofMetric(entry, spec.train.steps));
    }
  }
}

function ofEvent(jobId: string, { position, type, at, data }: JobEvent): FineTuningJobEvent {
  return {
    id: `ftevent-${position}`,
    object: 'fine_tuning.job.event',
    created_at: secondsOf(at),
    level: data.to === 'failed' ? 'error' : (LEVELS[type] ?? 'info'),
    message: messageOf(jobId, type, data),
    type: 'message',
    data: { ...data, type },
  };
}

function messageOf(jobId: string, type: string, data: JobEvent['data']): string {
  if (type === 'job.created') return `Created fine-tuning job: ${jobId}`;
  if (type === 'job.state')
    return data.reason ? `The job is ${data.to}: ${data.reason}` : `The job is ${data.to}`;
  if (type === 'checkpoint.committed') return `Checkpoint created at step ${data.step}`;
  const details = Object.entries(data).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return `${type}: ${details.join(', ')}`;
}

function ofMetric(metric: JobMetric, totalSteps = 0): FineTuningJobEvent {
  const { position, at, step } = metric;
  const { text, data } = metric.reinforcement ? rewardsOf(metric, metric.reinforcement) : lossesOf(metric);
  return {
    id: `ftevent-${position}`,
    object: 'fine_tuning.job.event',
    created_at: secondsOf(at),
    level: 'info',
    message: `Step ${step}/${totalSteps}: ${text}`,
    type: 'metrics',
    data: { step, total_steps: totalSteps, ...data },
  };
}

function lossesOf({ loss, eval_losses }: JobMetric) {
  const validLoss = eval_losses?.[VALIDATION_FILE] ?? null;
  return {
    text: `training loss=${loss?.toFixed(4)}${validLoss === null ? '' : `, validation loss=${validLoss.toFixed(4)}`}`,
    data: { train_loss: loss, ...(validLoss !== null && { valid_loss: validLoss }) },
  };
}

/** In the words of the hosted API. */
function rewardsOf({ eval_losses }: JobMetric, { reward }: NonNullable<JobMetric['reinforcement']>) {
  const valid = eval_losses?.[VALIDATION_FILE] ?? null;
  return {
    text: `train mean reward=${reward?.toFixed(4)}${valid === null ? '' : `, full validation mean reward=${valid.toFixed(4)}`}`,
    data: {
      train_mean_reward: reward,
      ...(valid !== null && { full_valid_mean_reward: valid }),
      scores: { train_reward_mean: reward, ...(valid !== null && { valid_reward_mean: valid }) },
    },
  };
}
