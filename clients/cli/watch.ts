import { isFinal, type Job, type JobMetric, type JobState, type Warning } from '../../contracts/index.js';
import { reinforcementOf } from '../../job-document/index.js';
import { duration, ranks } from '../text/numbers.js';
import { progressBar } from './bar.js';
import type { Context } from './context.js';
import { lossOf, preferenceOf, ranksOf, rateOf, rewardOf } from './format.js';

/** Minimum interval between reads of a watched job: the stream signals changes, the job record has the details. */
const REFRESH_MS = 250;

/** The least that a request for points may ask for. */
const FEWEST_POINTS = 16;

/** A job, and the means of the samples of its newest step. */
interface Seen {
  job: Job;
  samples: JobMetric['reinforcement'];
}

/** Display of a watched job. */
interface JobView {
  update(seen: Seen): void;
  close(): void;
}

function figures({ job, samples }: Seen) {
  const eta = job.progress.eta_seconds;
  return {
    loss: lossOf(job) + preferenceOf(job) + rewardOf(samples),
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
    update(seen) {
      const { step, total_steps } = seen.job.progress;
      if (bar.isActive) bar.update(step, figures(seen));
      else if (total_steps !== null) bar.start(total_steps, step, figures(seen));
    },
    close: () => bar.stop(),
  };
}

/** Prints a line for every change of state and every tenth of the work; with --json the job itself. */
function lineView(context: Context): JobView {
  let last = '';
  return {
    update(seen) {
      const { job } = seen;
      const { step, total_steps, percent } = job.progress;
      const mark = `${job.state} ${percent === null ? '' : Math.floor(percent / 10)}`;
      if (mark === last) return;
      last = mark;
      const { loss, rate, ranks } = figures(seen);
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
    const newest = await newestMetric(context, job);
    view.update({ job, samples: newest?.reinforcement });
    for await (const seen of changes(context, job, newest)) {
      job = seen.job;
      view.update(seen);
    }
    return job;
  } finally {
    view.close();
  }
}

/** Returns the newest metric of a job whose record does not have all that is shown. */
async function newestMetric({ client }: Context, { id, spec }: Job): Promise<JobMetric | undefined> {
  if (reinforcementOf(spec.train) === null) return undefined;
  return (await client.jobs.curve(id, FEWEST_POINTS)).at(-1);
}

/**
 * Yields the job after each change until it has ended or is paused. @param metric the newest one, which the stream
 * repeats
 */
async function* changes(
  context: Context,
  first: Job,
  metric: JobMetric | undefined,
): AsyncGenerator<Seen, void> {
  const { client, signal } = context;
  if (isFinished(first.state)) return;
  let looked = 0;
  let newest = metric;
  for await (const entry of client.jobs.follow(first.id, { kinds: ['event', 'metric'], signal })) {
    if (entry.kind === 'event' && entry.type === 'data.prepared')
      context.warn(entry.data.warnings as Warning[] | undefined);
    if (entry.kind === 'metric' && entry.step >= (newest?.step ?? 0)) newest = entry;
    if (entry.kind !== 'event' && Date.now() - looked < REFRESH_MS) continue;
    looked = Date.now();
    const job = await client.jobs.get(first.id, { signal });
    yield { job, samples: newest?.reinforcement };
    // The job may be ahead of the stream, whose earlier entries have warnings.
    const ended =
      entry.kind === 'event' && entry.type === 'job.state' && isFinished(entry.data.to as JobState);
    if (ended && isFinished(job.state)) return;
  }
  yield { job: await client.jobs.get(first.id, { signal }), samples: newest?.reinforcement };
}

const isFinished = (state: JobState) => isFinal(state) || state === 'paused';
