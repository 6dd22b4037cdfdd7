import { ApiError, collect, type Zerofleet } from '../../clients/typescript/index.js';
import { isFinal, type Job, type JobSpec } from '../../contracts/index.js';
import { digitsJob, uploadDigits } from '../support/prompts.js';
import { smallJob } from '../support/specs.js';
import type { Random } from './random.js';
import { retryUntilAnswered } from './retrying-client.js';

/** Variants of one training, distinguishable by their digests. */
const TRAININGS = 4;
/** Variant of reinforcement learning, whose steps are calls. */
const REINFORCEMENT = TRAININGS;
const VARIANTS = TRAININGS + 1;
/** Variant of sessions, whose digest is that of the session without faults. */
export const SESSION_VARIANT = VARIANTS;
/** More than the slots of one agent. */
const MAX_RANKS = 4;
/** Share of jobs that require all ranks, and so two agents. */
const WIDE_SHARE = 0.2;
const PAUSED_SHARE = 0.3;
const RESIZED_SHARE = 0.5;
const STEPS = 60;
const REINFORCEMENT_STEPS = 15;
/** Maximum kills between two checkpoints. */
const MAX_ERRORS = 1000;

/** A job acknowledged by the API. */
export interface Submitted {
  name: string;
  variant: number;
  id: string;
  /** Its newest read state. */
  job: Job;
}

/** A request for a job at a certain step. */
interface TimedRequest {
  step: number;
  kind: 'pause' | 'resize';
}

/** Initial and minimum number of ranks of a job. */
interface InitialRanks {
  ranks: number;
  least: number;
}

/** Jobs with known reference digests. */
export class Workload {
  readonly submitted: Submitted[] = [];
  readonly counts = { pauses: 0, resumes: 0, resizes: 0 };
  private readonly digests: string[] = [];

  private constructor(
    private readonly client: Zerofleet,
    private readonly dataset: string,
    private readonly prompts: string,
    private readonly random: Random,
  ) {}

  /** Uploads the data and trains each variant without faults, on one rank. */
  static async prepare(client: Zerofleet, text: string, random: Random): Promise<Workload> {
    const { id } = await client.datasets.create('chaos', text);
    const workload = new Workload(client, id, await uploadDigits(client), random);
    for (let variant = 0; variant < VARIANTS; variant++) {
      const job = await workload.train(`reference-${variant}`, variant, { ranks: 1, least: 1 }, []);
      workload.addReference(job);
    }
    return workload;
  }

  /** Takes the digest of the next variant from a job without faults. */
  addReference({ export: exported, failure }: Job): void {
    if (!exported) throw new Error(`the reference did not end well: ${JSON.stringify(failure)}`);
    this.digests.push(exported.state_digest);
  }

  async submit(name: string, spec: JobSpec, variant: number): Promise<Submitted> {
    // The same key each time: a repeated request must not create a second job.
    const job = await retryUntilAnswered(() =>
      this.client.jobs.create(spec, { idempotencyKey: `key-of-${name}` }),
    );
    const submitted: Submitted = { name, variant, id: job.id, job };
    this.submitted.push(submitted);
    return submitted;
  }

  /** Number of reference jobs. */
  get references(): number {
    return this.digests.length;
  }

  /** Returns the last checkpoint of the first reference job. */
  async checkpointOfReference(): Promise<string> {
    const [newest] = await collect(this.client.jobs.checkpoints(this.submitted[0]?.id ?? ''));
    if (!newest) throw new Error('the reference has no checkpoint');
    return newest.id;
  }

  digestOf(variant: number): string | undefined {
    return this.digests[variant];
  }

  get datasets(): string[] {
    return [this.dataset, this.prompts];
  }

  /** Keeps `concurrency` jobs running until `signal`; resolves when all have ended. */
  async run(concurrency: number, signal: AbortSignal): Promise<void> {
    let number = 0;
    const lane = async () => {
      while (!signal.aborted) {
        const variant = this.random.between(0, VARIANTS - 1);
        const job = number++;
        // Ensures for short runs: the first job needs two agents, the second one is resized.
        const least = job === 0 || this.random.next() < WIDE_SHARE ? MAX_RANKS : 1;
        const acts: TimedRequest[] = job === 1 ? [{ kind: 'resize', step: 1 }] : this.plan();
        await this.train(`chaos-${job}`, variant, { ranks: this.ranksFrom(least), least }, acts);
      }
    };
    await Promise.all(Array.from({ length: concurrency }, lane));
  }

  private async train(
    name: string,
    variant: number,
    wanted: InitialRanks,
    acts: TimedRequest[],
  ): Promise<Job> {
    const entry = await this.submit(name, this.spec(name, variant, wanted), variant);
    const { id } = entry;
    let [act, ...later] = acts;
    while (!isFinal(entry.job.state)) {
      const step = act?.step ?? Number.POSITIVE_INFINITY;
      entry.job = await retryUntilAnswered(() =>
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

  /** Requests for a running job, in order. */
  private plan(): TimedRequest[] {
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
    await ignoreConflict(retryUntilAnswered(() => this.client.jobs.pause(id)));
  }

  private async resume(id: string, ranks: number): Promise<void> {
    this.counts.resumes++;
    await ignoreConflict(retryUntilAnswered(() => this.client.jobs.resume(id, { ranks })));
  }

  private async resize(id: string, ranks: number): Promise<void> {
    this.counts.resizes++;
    await ignoreConflict(retryUntilAnswered(() => this.client.jobs.resize(id, ranks)));
  }

  private spec(name: string, variant: number, { ranks, least }: InitialRanks): JobSpec {
    const { dataset, prompts } = this;
    const spec =
      variant === REINFORCEMENT
        ? digitsJob({ name, dataset: prompts, steps: REINFORCEMENT_STEPS, ranks })
        : smallJob({ name, dataset, steps: STEPS, ranks, every_steps: 5 });
    return {
      ...spec,
      checkpoint: { ...spec.checkpoint, keep: { last: 2 } },
      data: { ...spec.data, seed: variant },
      train: { ...spec.train, seed: 100 + variant },
      resources: { ranks: { min: least, max: MAX_RANKS, preferred: ranks } },
      retry: { max_errors: MAX_ERRORS },
    };
  }
}

/** Ignores a conflict: the job may have ended or changed since it was read. */
async function ignoreConflict(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 409)) throw error;
  }
}
