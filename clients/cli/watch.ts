import { isFinal, type Job, type JobState, type Warning } from '../../contracts/index.js';
import { duration, ranks } from '../text/numbers.js';
import { progressBar } from './bar.js';
import type { Context } from './context.js';
import { lossOf, preferenceOf, ranksOf, rateOf } from './format.js';

/** Minimum interval between reads of a watched job: the stream signals changes, the job record has the details. */
const REFRESH_MS = 250;

/** Display of a watched job. */
interface JobView {
  update(job: Job): void;
  close(): void;
}

function figures(job: Job) {
  const eta = job.progress.eta_seconds;
  return {
    loss: lossOf(job) + preferenceOf(job),
    rate: rateOf(job),
    ranks: ranks(ranksOf(job)),
    left: eta === null || job.state !== 'running' ? '' : `${duration(eta)} left`,
    state: job.state === 'running' ? '' : job.state,
  };
}

/** A bar drawn in place. */
function barView(context: Context): JobView {
  const bar = progressBar(context, 'step {value}/{total}  loss {loss}  {rate} tok/s  {ranks}  {left}{state}');
  return {
    update(job) {
      const { step, total_steps } = job.progress;
      if (bar.isActive) bar.update(step, figures(job));
      else if (total_steps !== null) bar.start(total_steps, step, figures(job));
    },
    close: () => bar.stop(),
  };
}

/** Prints a line for every change of state and every tenth of the work; with --json the job itself. */
function lineView(context: Context): JobView {
  let last = '';
  return {
    update(job) {
      const { step, total_steps, percent } = job.progress;
      const mark = `${job.state} ${percent === null ? '' : Math.floor(percent / 10)}`;
      if (mark === last) return;
      last = mark;
      const { loss, rate, ranks } = figures(job);
      context.show(
        job,
        () => `${job.state}  step ${step}/${total_steps ?? '–'}  loss ${loss}  ${rate} tokens/s  ${ranks}`,
      );
    },
    close() {},
  };
}

/** Shows a job until it has ended or is paused. After Ctrl-C the job keeps running. @returns the job as last read */
export async function watchJob(context: Context, id: string): Promise<Job> {
  context.interruptMessage = `the job keeps running; watch it again with: zerofleet watch ${id}`;
  const view = context.interactive ? barView(context) : lineView(context);
  try {
    let job = await context.client.jobs.get(id, { signal: context.signal });
    view.update(job);
    for await (const seen of changes(context, job)) {
      job = seen;
      view.update(job);
    }
    return job;
  } finally {
    view.close();
  }
}

/** Yields the job after each change until it has ended or is paused. */
async function* changes(context: Context, first: Job): AsyncGenerator<Job, void> {
  const { client, signal } = context;
  if (isFinished(first.state)) return;
  let looked = 0;
  for await (const entry of client.jobs.follow(first.id, { kinds: ['event', 'metric'], signal })) {
    if (entry.kind === 'event' && entry.type === 'data.prepared')
      context.warn(entry.data.warnings as Warning[] | undefined);
    if (entry.kind !== 'event' && Date.now() - looked < REFRESH_MS) continue;
    looked = Date.now();
    const job = await client.jobs.get(first.id, { signal });
    yield job;
    // The job may be ahead of the stream, whose earlier entries have warnings.
    const ended =
      entry.kind === 'event' && entry.type === 'job.state' && isFinished(entry.data.to as JobState);
    if (ended && isFinished(job.state)) return;
  }
  yield await client.jobs.get(first.id, { signal });
}

const isFinished = (state: JobState) => isFinal(state) || state === 'paused';
