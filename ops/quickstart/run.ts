/** Steps of the quickstart, using the HTTP API only. */

import { ApiError, collect, type Zerofleet } from '../../clients/typescript/index.js';
import type { Job, JobSpec } from '../../contracts/index.js';
import { jobProgressView } from './progress.js';
import { chooseSteps } from './steps.js';

/** Steps of the run that measures the machine. */
const PROBE_STEPS = 8;
const FIRST_RANKS = 2;
const SECOND_RANKS = 3;
const POLL_MS = 100;

/** Result of the quickstart. */
export interface QuickstartResult {
  /** The job that was paused and resumed. */
  main: Job;
  /** The same document on one rank, without a pause. */
  reference: Job;
}

/** A job did not succeed. */
export class QuickstartError extends Error {
  override readonly name = 'QuickstartError';
}

/** Six leaves per step: they divide evenly among 1, 2 and 3 ranks. */
function jobSpec(name: string, dataset: string, ranks: number, steps: number): JobSpec {
  return {
    name,
    labels: { made_by: 'quickstart' },
    model: { preset: 'llama-tiny' },
    data: { dataset, tokenizer: 'bytes' },
    train: {
      steps,
      sequence_length: 128,
      global_batch_size: 24,
      micro_batch_size: 4,
      optimizer: { type: 'adamw', lr: 3e-3 },
      lr_schedule: { type: 'cosine', warmup_steps: Math.min(20, Math.ceil(steps / 10)), min_lr: 3e-4 },
      precision: 'bf16',
    },
    zero: { stage: 2 },
    resources: { ranks: { min: 1, max: 4, preferred: ranks } },
    checkpoint: { every_steps: Math.ceil(steps / 3) },
  };
}

const say = (line: string) => process.stdout.write(`${line}\n`);

export class Quickstart {
  constructor(
    private readonly client: Zerofleet,
    private readonly signal: AbortSignal,
  ) {}

  /** The job that would continue at the next start unless it is cancelled. */
  private unfinished: string | null = null;

  /** Cancels the unfinished job after an interruption or error. Idempotent; no effect on a finished job. */
  async cancel(): Promise<void> {
    const id = this.unfinished;
    this.unfinished = null;
    if (id === null) return;
    await this.client.jobs.cancel(id).catch((error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
    });
  }

  private async create(spec: JobSpec): Promise<string> {
    const { id } = await this.client.jobs.create(spec);
    this.unfinished = id;
    return id;
  }

  /** @throws QuickstartError when a job fails, the signal's reason when it was interrupted */
  async run(dataset: string): Promise<QuickstartResult> {
    const steps = await this.stepsOfThisMachine(dataset);
    say(`\nOne job, ${steps} steps: on ${FIRST_RANKS} ranks, paused half-way, resumed on ${SECOND_RANKS}`);
    const id = await this.create(jobSpec('quickstart', dataset, FIRST_RANKS, steps));
    await this.follow(id, 'first half ', steps, (job) => job.progress.step >= steps / 2);
    await this.client.jobs.pause(id);
    const paused = await this.client.jobs.until(id, (job) => job.state === 'paused', this.polling());
    this.expectState(paused, 'paused');
    say(`  paused at step ${paused.progress.step}, checkpoint ${paused.latest_checkpoint?.state_digest}`);
    await this.client.jobs.resume(id, { ranks: SECOND_RANKS });
    const main = await this.follow(id, 'second half', steps, () => false);
    this.expectState(main, 'succeeded');

    say('\nThe same document on 1 rank, without a pause');
    const other = await this.create(jobSpec('quickstart, uninterrupted', dataset, 1, steps));
    const reference = await this.follow(other, 'reference  ', steps, () => false);
    this.expectState(reference, 'succeeded');
    this.unfinished = null;
    return { main, reference };
  }

  /** Trains a few steps and chooses the number of steps of the job by their duration. */
  private async stepsOfThisMachine(dataset: string): Promise<number> {
    const id = await this.create(jobSpec('quickstart, probe', dataset, FIRST_RANKS, PROBE_STEPS));
    const probe = await this.client.jobs.until(id, () => false, this.polling());
    this.expectState(probe, 'succeeded');
    const steps = chooseSteps(await collect(this.client.jobs.metrics(id)));
    say(
      `\nThis machine trained ${PROBE_STEPS} steps as a probe: ${steps} steps fit in the minute that the runs take`,
    );
    return steps;
  }

  private polling() {
    return { interval_ms: POLL_MS, signal: this.signal };
  }

  private async follow(id: string, label: string, steps: number, until: (job: Job) => boolean): Promise<Job> {
    const view = jobProgressView(label, steps);
    try {
      const onJob = (job: Job) => view.update(job);
      return await this.client.jobs.until(id, until, { ...this.polling(), onJob });
    } finally {
      view.close();
    }
  }

  private expectState(job: Job, state: Job['state']): void {
    if (job.state === state) return;
    const why = job.failure ? `: ${job.failure.code}, ${job.failure.message}` : '';
    throw new QuickstartError(`job ${job.id} is ${job.state}${why}`);
  }
}
