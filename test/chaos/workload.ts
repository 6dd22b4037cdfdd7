import type { Job, JobSpec } from '../../contracts/index.js';
import { isFinal } from '../../contracts/index.js';
import { ApiError, type ZerofleetClient } from '../../scripts/client/client.js';
import { smallJob } from '../e2e/specs.js';
import { patiently } from './patient-client.js';
import type { Random } from './random.js';

/** One training in so many variants that their digests tell them apart. */
const VARIANTS = 4;
const MAX_RANKS = 3;
const STEPS = 60;
/** So many kills may come between two checkpoints. */
const MAX_ERRORS = 1000;

/** A job that the API has acknowledged. */
export interface Submitted {
  name: string;
  variant: number;
  id: string;
  /** As last seen. */
  job: Job;
}

/** Jobs whose undisturbed digests are known. */
export class Workload {
  readonly submitted: Submitted[] = [];
  readonly counts = { pauses: 0, resumes: 0 };
  private readonly digests: string[] = [];

  private constructor(
    private readonly client: ZerofleetClient,
    private readonly dataset: string,
    private readonly random: Random,
  ) {}

  /** Uploads the data and trains each variant undisturbed, on one rank. */
  static async prepare(client: ZerofleetClient, text: string, random: Random): Promise<Workload> {
    const { id } = await client.createDataset('chaos', text);
    const workload = new Workload(client, id, random);
    for (let variant = 0; variant < VARIANTS; variant++) {
      const job = await workload.train(`reference-${variant}`, variant, 1);
      const digest = job.export?.state_digest;
      if (!digest) throw new Error(`the reference did not end well: ${JSON.stringify(job.failure)}`);
      workload.digests.push(digest);
    }
    return workload;
  }

  /** Of the submitted jobs, those that ran undisturbed. */
  get references(): number {
    return this.digests.length;
  }

  digestOf(variant: number): string | undefined {
    return this.digests[variant];
  }

  get datasetId(): string {
    return this.dataset;
  }

  /** Keeps `concurrency` jobs going until `signal`; resolves when every one of them has ended. */
  async run(concurrency: number, signal: AbortSignal): Promise<void> {
    let number = 0;
    const lane = async () => {
      while (!signal.aborted) {
        const variant = this.random.between(0, VARIANTS - 1);
        await this.train(`chaos-${number++}`, variant, this.random.between(1, MAX_RANKS));
      }
    };
    await Promise.all(Array.from({ length: concurrency }, lane));
  }

  private async train(name: string, variant: number, ranks: number): Promise<Job> {
    const spec = this.spec(name, variant, ranks);
    // The same key each time: a repeated request must not make a second job.
    const created = await patiently(() => this.client.createJob(spec, { idempotencyKey: `key-of-${name}` }));
    const entry: Submitted = { name, variant, id: created.id, job: created };
    this.submitted.push(entry);
    const pauseAt = this.random.next() < 0.3 ? this.random.between(1, STEPS) : Number.POSITIVE_INFINITY;
    let paused = false;
    while (!isFinal(entry.job.state)) {
      entry.job = await patiently(() =>
        this.client.waitForJob(
          entry.id,
          (job) => job.state === 'paused' || (!paused && job.progress.step >= pauseAt),
        ),
      );
      if (entry.job.state === 'paused') await this.resume(entry);
      else if (!paused && !isFinal(entry.job.state)) {
        paused = true;
        await this.pause(entry);
      }
    }
    return entry.job;
  }

  private async pause({ id }: Submitted): Promise<void> {
    this.counts.pauses++;
    await unlessTooLate(patiently(() => this.client.pauseJob(id)));
  }

  private async resume({ id }: Submitted): Promise<void> {
    this.counts.resumes++;
    await unlessTooLate(patiently(() => this.client.resumeJob(id, this.random.between(1, MAX_RANKS))));
  }

  private spec(name: string, variant: number, ranks: number): JobSpec {
    const spec = smallJob({ name, dataset: this.dataset, steps: STEPS, ranks, every_steps: 5, keep_last: 2 });
    return {
      ...spec,
      data: { ...spec.data, seed: variant },
      train: { ...spec.train, seed: 100 + variant },
      resources: { ranks: { min: 1, max: MAX_RANKS, preferred: ranks } },
      retry: { max_errors: MAX_ERRORS },
    };
  }
}

/** A job may have ended, or moved on, between the look at it and the request. */
async function unlessTooLate(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 409)) throw error;
  }
}
