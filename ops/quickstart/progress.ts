import { type Options, SingleBar } from 'cli-progress';
import type { Job } from '../../contracts/index.js';

const PLAIN_STEPS_PERCENT = 10;

/** Shows the progress of a job. */
interface JobProgressView {
  update(job: Job): void;
  /** Ends the display. Idempotent. */
  close(): void;
}

const ranks = (job: Job) => {
  const count = job.world_size ?? job.requested_ranks;
  return `${count} ${count === 1 ? 'rank ' : 'ranks'}`;
};
const loss = (job: Job) => job.progress.loss?.toFixed(3) ?? '–';
const rate = (job: Job) => Math.round(job.progress.tokens_per_second ?? 0).toLocaleString('en');

/** A bar drawn in place, for terminals. */
function barView(label: string, total: number): JobProgressView {
  const options: Options = {
    format: `  ${label} {bar} {percentage} %  step {value}/{total}  loss {loss}  {rate} tokens/s  {ranks} {state}`,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 24,
    hideCursor: true,
    // The stack has its own signal handler, which closes the bar.
    gracefulExit: false,
    linewrap: false,
  };
  const bar = new SingleBar(options);
  return {
    update(job) {
      const state = job.state === 'running' ? '' : job.state;
      const values = { loss: loss(job), rate: rate(job), ranks: ranks(job), state };
      if (bar.isActive) bar.update(job.progress.step, values);
      else bar.start(total, job.progress.step, values);
    },
    close: () => bar.stop(),
  };
}

/** Prints one line per tenth of the work, for logs. */
function lineView(label: string): JobProgressView {
  let shown = 0;
  return {
    update(job) {
      const { percent, step, total_steps } = job.progress;
      if (percent === null || percent < shown + PLAIN_STEPS_PERCENT) return;
      shown = percent - (percent % PLAIN_STEPS_PERCENT);
      const figures = `step ${step}/${total_steps}  loss ${loss(job)}  ${rate(job)} tokens/s  ${ranks(job)}`;
      process.stdout.write(`  ${label} ${String(shown).padStart(3)} %  ${figures}\n`);
    },
    close() {},
  };
}

/** @param label fixed-width name of the run */
export function jobProgressView(label: string, totalSteps: number): JobProgressView {
  return process.stdout.isTTY ? barView(label, totalSteps) : lineView(label);
}
