/** Jobs that train on pods until they have been disturbed, and the comparison of their bits with those of one rank. */
import { setTimeout as sleep } from 'node:timers/promises';
import { collect, type Zerofleet } from '../../clients/typescript/index.js';
import type { JobSpec, Worker } from '../../contracts/index.js';
import { until } from '../../platform/testing/waiting.js';
import type { KubernetesStack } from '../support/kubernetes-stack.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { sampleText } from '../support/stack.js';

/** More than a job can take here: what is to disturb it may take its time. */
const ENDLESS = 1_000_000;
const EVERY_STEPS = 10;
const POLL_MS = 200;

/** State of a job after its last disturbance. */
interface Finished {
  name: string;
  step: number;
  state_digest: string | null;
  /** Steps up to `step` without metrics. */
  missing_steps: number[];
}

export interface Compared extends Finished {
  /** Digest of the same step on one rank. */
  expected: string | null;
}

export class PodJobs {
  private readonly finished: Finished[] = [];

  private constructor(
    readonly stack: KubernetesStack,
    private readonly dataset: string,
  ) {}

  static async start(stack: KubernetesStack): Promise<PodJobs> {
    const { id } = await stack.cluster.client.datasets.create('openapi', sampleText());
    return new PodJobs(stack, id);
  }

  private get client(): Zerofleet {
    return this.stack.cluster.client;
  }

  /** Creates a job that ends only when it is cancelled. Returns its id. */
  async create(name: string, ranks: { min: number; max?: number }, pool = 'default'): Promise<string> {
    const { min, max = min } = ranks;
    const endless = { name, dataset: this.dataset, steps: ENDLESS, ranks: min, every_steps: EVERY_STEPS };
    const spec: JobSpec = {
      ...largerSteps(smallJob(endless)),
      checkpoint: { every_steps: EVERY_STEPS, keep_every: EVERY_STEPS },
      resources: { pool, ranks: { min, max, preferred: min } },
    };
    return (await this.client.jobs.create(spec)).id;
  }

  /** Waits until a job has made steps on this number of ranks. */
  async untilTraining(id: string, ranks: number): Promise<void> {
    await this.stack.cluster.untilRanks(id, ranks);
    await this.stack.cluster.untilMoreSteps(id, 3);
  }

  /** Returns zone and node of a job's workers, in the order of its ranks. */
  async topologies(id: string): Promise<Worker['topology'][]> {
    const placements = (await this.stack.cluster.placements(id)).at(-1) ?? [];
    const topologies = new Map((await this.client.workers()).map((worker) => [worker.id, worker.topology]));
    return placements.map(({ worker_id }) => topologies.get(worker_id) ?? []);
  }

  /** Waits until a waiting job is told why. */
  async untilReason(id: string, words: RegExp): Promise<void> {
    await until(async () => {
      const events = await this.stack.cluster.events(id, 'job.waiting');
      return events.some(({ data }) => words.test(`${data.reason}: ${data.message}`));
    });
  }

  /** Waits until this number of pods is left. */
  async untilPods(count: number): Promise<string[]> {
    for (;;) {
      const pods = await this.stack.pods();
      if (pods.length === count) return pods;
      await sleep(POLL_MS);
    }
  }

  /** One cycle: no pod, one, three, the one that trains, none. */
  async cycle(name: string): Promise<void> {
    const id = await this.create(name, { min: 1, max: 3 });
    await this.untilTraining(id, 1);
    await this.client.jobs.resize(id, 3);
    await this.untilTraining(id, 3);
    await this.client.jobs.resize(id, 1);
    await this.untilPods(1);
    await this.finish(name, id);
    await this.untilPods(0);
  }

  /** Keeps the state of the job's next checkpoint for `compare`, and cancels the job. */
  async finish(name: string, id: string): Promise<void> {
    const { progress } = await this.client.jobs.get(id);
    const { latest_checkpoint: saved } = await this.client.jobs.until(
      id,
      (job) => (job.latest_checkpoint?.step ?? 0) > progress.step,
    );
    const step = saved?.step ?? 0;
    // Metrics of the checkpoint's step may come after it.
    await this.client.jobs.until(id, (job) => job.progress.step > step);
    const reported = new Set((await collect(this.client.jobs.metrics(id))).map((metrics) => metrics.step));
    const missing = Array.from({ length: step }, (_, i) => i + 1).filter((each) => !reported.has(each));
    const state = saved?.state_digest ?? null;
    this.finished.push({ name, step, state_digest: state, missing_steps: missing });
    await this.client.jobs.cancel(id);
  }

  /** Trains an undisturbed job on one rank up to the last step of all, and returns its digests beside theirs. */
  async compare(): Promise<Compared[]> {
    const last = Math.max(...this.finished.map(({ step }) => step));
    const id = await this.create('undisturbed', { min: 1 });
    await this.client.jobs.until(id, (job) => (job.latest_checkpoint?.step ?? 0) >= last);
    const checkpoints = await collect(this.client.jobs.checkpoints(id));
    await this.client.jobs.cancel(id);
    const digests = new Map(checkpoints.map(({ step, state_digest }) => [step, state_digest]));
    await this.untilPods(0);
    return this.finished.map((job) => ({ ...job, expected: digests.get(job.step) ?? null }));
  }
}
