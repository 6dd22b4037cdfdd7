/** Steps of the quickstart, using the HTTP API only. */

import { ApiError, type Zerofleet } from '../../client/index.js';
import type { Job, JobSpec } from '../../contracts/index.js';
import { jobProgressView } from './progress.js';

/** Long enough for a clear fall of the loss, short enough for a demo. */
const STEPS = 300;
const PAUSE_AT = STEPS / 2;
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
function jobSpec(name: string, dataset: string, ranks: number): JobSpec {
  return {
    name,
    labels: { made_by: 'quickstart' },
    model: { preset: 'llama-tiny' },
    data: { dataset, tokenizer: 'bytes' },
    train: {
      steps: STEPS,
      sequence_length: 128,
      global_batch_size: 24,
      micro_batch_size: 4,
      optimizer: { type: 'adamw', lr: 3e-3 },
      lr_schedule: { type: 'cosine', warmup_steps: 20, min_lr: 3e-4 },
      precision: 'bf16',
    },
    zero: { stage: 2 },
    resources: { ranks: { min: 1, max: 4, preferred: ranks } },
    checkpoint: { every_steps: 100 },
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
    say(`\nOne job, ${STEPS} steps: on ${FIRST_RANKS} ranks, paused half-way, resumed on ${SECOND_RANKS}`);
    const id = await this.create(jobSpec('quickstart', dataset, FIRST_RANKS));
    await this.follow(id, 'first half ', (job) => job.progress.step >= PAUSE_AT);
    await this.client.jobs.pause(id);
    const paused = await this.client.jobs.until(id, (job) => job.state === 'paused', this.polling());
    this.expectState(paused, 'paused');
    say(`  paused at step ${paused.progress.step}, checkpoint ${paused.latest_checkpoint?.state_digest}`);
    await this.client.jobs.resume(id, { ranks: SECOND_RANKS });
    const main = await this.follow(id, 'second half', () => false);
    this.expectState(main, 'succeeded');

    say('\nThe same document on 1 rank, without a pause');
    const other = await this.create(jobSpec('quickstart, uninterrupted', dataset, 1));
    const reference = await this.follow(other, 'reference  ', () => false);
    this.expectState(reference, 'succeeded');
    this.unfinished = null;
    return { main, reference };
  }

  private polling() {
    return { interval_ms: POLL_MS, signal: this.signal };
  }

  private async follow(id: string, label: string, until: (job: Job) => boolean): Promise<Job> {
    const view = jobProgressView(label, STEPS);
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
