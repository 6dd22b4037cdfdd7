import { ApiError, type Zerofleet } from '../../client/index.js';
import { isFinal, type Job, type JobSpec } from '../../contracts/index.js';
import { smallJob } from '../support/specs.js';
import { patiently } from './patient-client.js';
import type { Random } from './random.js';

/** One training in so many variants that their digests tell them apart. */
const VARIANTS = 4;
/** More than an agent has slots for. */
const MAX_RANKS = 4;
/** Of the jobs, those that take no fewer than all ranks, and so need two agents. */
const WIDE_SHARE = 0.2;
const PAUSED_SHARE = 0.3;
const RESIZED_SHARE = 0.5;
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

/** What is asked of a job once it has come so far. */
interface Act {
  step: number;
  kind: 'pause' | 'resize';
}

/** How many ranks a job begins with, and the fewest that it takes. */
interface Wanted {
  ranks: number;
  least: number;
}

/** Jobs whose undisturbed digests are known. */
export class Workload {
  readonly submitted: Submitted[] = [];
  readonly counts = { pauses: 0, resumes: 0, resizes: 0 };
  private readonly digests: string[] = [];

  private constructor(
    private readonly client: Zerofleet,
    private readonly dataset: string,
    private readonly random: Random,
  ) {}

  /** Uploads the data and trains each variant undisturbed, on one rank. */
  static async prepare(client: Zerofleet, text: string, random: Random): Promise<Workload> {
    const { id } = await client.datasets.create('chaos', text);
    const workload = new Workload(client, id, random);
    for (let variant = 0; variant < VARIANTS; variant++) {
      const job = await workload.train(`reference-${variant}`, variant, { ranks: 1, least: 1 }, []);
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
        const job = number++;
        // However short the run is: the first one needs two agents, and the second one is resized.
        const least = job === 0 || this.random.next() < WIDE_SHARE ? MAX_RANKS : 1;
        const acts: Act[] = job === 1 ? [{ kind: 'resize', step: 1 }] : this.plan();
        await this.train(`chaos-${job}`, variant, { ranks: this.ranksFrom(least), least }, acts);
      }
    };
    await Promise.all(Array.from({ length: concurrency }, lane));
  }

  private async train(name: string, variant: number, wanted: Wanted, acts: Act[]): Promise<Job> {
    const spec = this.spec(name, variant, wanted);
    // The same key each time: a repeated request must not make a second job.
    const created = await patiently(() =>
      this.client.jobs.create(spec, { idempotencyKey: `key-of-${name}` }),
    );
    const { id } = created;
    const entry: Submitted = { name, variant, id, job: created };
    this.submitted.push(entry);
    let [act, ...later] = acts;
    while (!isFinal(entry.job.state)) {
      const step = act?.step ?? Number.POSITIVE_INFINITY;
      entry.job = await patiently(() =>
        this.client.jobs.until(id, (job) => job.state === 'paused' || job.progress.step >= step),
      );
      if (isFinal(entry.job.state)) break;
      if (entry.job.state === 'paused') {
        await this.resume(id, this.ranksFrom(wanted.least));
      } else if (act) {
        await (act.kind === 'pause' ? this.pause(id) : this.resize(id, this.ranksFrom(wanted.least)));
        [act, ...later] = later;
      }
    }
    return entry.job;
  }

  /** What is asked of a job while it runs, in order. */
  private plan(): Act[] {
    const shares = [
      ['pause', PAUSED_SHARE],
      ['resize', RESIZED_SHARE],
      ['resize', RESIZED_SHARE],
    ] as const;
    return shares
      .filter(([, share]) => this.random.next() < share)
      .map(([kind]) => ({ kind, step: this.random.between(1, STEPS) }))
      .sort((a, b) => a.step - b.step);
  }

  private ranksFrom(least: number): number {
    return this.random.between(least, MAX_RANKS);
  }

  private async pause(id: string): Promise<void> {
    this.counts.pauses++;
    await unlessTooLate(patiently(() => this.client.jobs.pause(id)));
  }

  private async resume(id: string, ranks: number): Promise<void> {
    this.counts.resumes++;
    await unlessTooLate(patiently(() => this.client.jobs.resume(id, { ranks: ranks })));
  }

  private async resize(id: string, ranks: number): Promise<void> {
    this.counts.resizes++;
    await unlessTooLate(patiently(() => this.client.jobs.resize(id, ranks)));
  }

  private spec(name: string, variant: number, { ranks, least }: Wanted): JobSpec {
    const spec = smallJob({ name, dataset: this.dataset, steps: STEPS, ranks, every_steps: 5, keep_last: 2 });
    return {
      ...spec,
      data: { ...spec.data, seed: variant },
      train: { ...spec.train, seed: 100 + variant },
      resources: { ranks: { min: least, max: MAX_RANKS, preferred: ranks } },
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
