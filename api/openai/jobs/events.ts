/** Events and metrics of a job in the shape of `fine_tuning.job.event`. */
import type { FineTuningJobEvent } from 'openai/resources/fine-tuning/jobs/jobs';
import { collect, type Zerofleet } from '../../../client/index.js';
import type { JobEvent, JobMetric } from '../../../contracts/index.js';
import { VALIDATION_FILE } from '../labels.js';
import { secondsOf } from '../pages.js';

/** Steps of a job that are told; of more the extremes of the loss are. */
const MAX_METRICS = 1000;

const LEVELS: Readonly<Record<string, FineTuningJobEvent['level']>> = {
  'rank.lost': 'warn',
  'node.lost': 'warn',
  'checkpoint.skipped': 'warn',
};

/** Returns the events of a job, newest first. */
export async function eventsOf(api: Zerofleet, job_id: string): Promise<FineTuningJobEvent[]> {
  const { spec } = await api.jobs.get(job_id);
  const events = await collect(api.jobs.events(job_id));
  const metrics = await api.jobs.curve(job_id, MAX_METRICS, { names: ['loss'] });
  const entries: (JobEvent | JobMetric)[] = [...events, ...metrics];
  return entries
    .sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : b.seq - a.seq))
    .map((entry) => (entry.kind === 'event' ? ofEvent(job_id, entry) : ofMetric(entry, spec.train.steps)));
}

/** Server-sent events of a job, from its beginning until its end. */
export async function* streamOf(api: Zerofleet, job_id: string, signal: AbortSignal): AsyncGenerator<string> {
  const { spec } = await api.jobs.get(job_id);
  const message = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
  for await (const entry of api.jobs.follow(job_id, { kinds: ['event', 'metric'], signal })) {
    if (entry.kind === 'event') yield message(ofEvent(job_id, entry));
    else if (entry.kind === 'metric') yield message(ofMetric(entry, spec.train.steps));
  }
  yield 'data: [DONE]\n\n';
}

function ofEvent(job_id: string, { position, type, at, data }: JobEvent): FineTuningJobEvent {
  return {
    id: `ftevent-${position}`,
    object: 'fine_tuning.job.event',
    created_at: secondsOf(at),
    level: data.to === 'failed' ? 'error' : (LEVELS[type] ?? 'info'),
    message: messageOf(job_id, type, data),
    type: 'message',
    data: { ...data, type },
  };
}

function messageOf(job_id: string, type: string, data: JobEvent['data']): string {
  if (type === 'job.created') return `Created fine-tuning job: ${job_id}`;
  if (type === 'job.state')
    return data.reason ? `The job is ${data.to}: ${data.reason}` : `The job is ${data.to}`;
  if (type === 'checkpoint.committed') return `Checkpoint created at step ${data.step}`;
  const details = Object.entries(data).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return `${type}: ${details.join(', ')}`;
}

function ofMetric({ position, at, step, loss, eval_losses }: JobMetric, total_steps = 0): FineTuningJobEvent {
  const valid_loss = eval_losses?.[VALIDATION_FILE] ?? null;
  const losses = `training loss=${loss?.toFixed(4)}${valid_loss === null ? '' : `, validation loss=${valid_loss.toFixed(4)}`}`;
  return {
    id: `ftevent-${position}`,
    object: 'fine_tuning.job.event',
    created_at: secondsOf(at),
    level: 'info',
    message: `Step ${step}/${total_steps}: ${losses}`,
    type: 'metrics',
    data: { step, total_steps, train_loss: loss, ...(valid_loss !== null && { valid_loss }) },
  };
}
