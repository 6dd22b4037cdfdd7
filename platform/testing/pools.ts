/** A pool of a test: its workers, jobs that ask for places, and time that passes at once. */
import { Redis } from 'ioredis';
import type { Test } from 'tap';
import { ulid } from 'ulid';
import type { Job, JobSpec } from '../../contracts/index.js';
import {
  type ClaimResult,
  type JobStorePort,
  openJobStore,
  type Place,
  type WorkerAnnouncement,
} from '../job-store/index.js';
import { createTestJob } from './jobs.js';
import type { TestRedis } from './redis.js';
import { testWorker } from './workers.js';

const LEASE_MS = 60_000;
const MINUTE_MS = 60_000;

export interface PoolJobOptions {
  min?: number;
  /** The number that is asked for. */
  ranks?: number;
  priority?: number;
  project?: string;
}

export interface ClaimOptions {
  spread?: boolean;
  lease_ms?: number;
}

export class TestPool {
  private constructor(
    readonly store: JobStorePort,
    readonly redis: Redis,
    private readonly prefix: string,
  ) {}

  /** A pool of its own with workers of so many slots. @param numerics of those that say so */
  static async open(
    t: Test,
    server: TestRedis,
    workers: Readonly<Record<string, number>>,
    numerics: Readonly<Record<string, string>> = {},
  ): Promise<TestPool> {
    const prefix = `{${ulid()}}`;
    const store = await openJobStore({ url: server.url, prefix });
    const redis = new Redis({ path: new URL(server.url).pathname });
    t.teardown(async () => {
      redis.disconnect();
      await store.close();
    });
    const pool = new TestPool(store, redis, prefix);
    for (const [id, slots] of Object.entries(workers))
      await pool.announce(id, slots, { numerics: numerics[id] ?? null });
    return pool;
  }

  announce(id: string, slots: number, changes: Partial<WorkerAnnouncement> = {}): Promise<void> {
    return this.store.announceWorker(testWorker(id, slots, changes), LEASE_MS);
  }

  /** A queued job of eight leaves. */
  async job({ min = 1, ranks = min, priority = 0, project }: PoolJobOptions = {}): Promise<Job> {
    const spec: Partial<JobSpec> = {
      ...(project !== undefined && { project }),
      priority,
      resources: { ranks: { min, preferred: ranks, max: 8 } },
      train: { steps: 100, global_batch_size: 32, micro_batch_size: 4 },
    };
    return createTestJob(this.store, spec);
  }

  async claim(job: Job, worker: string, options: ClaimOptions = {}): Promise<ClaimResult> {
    const { spread = false, lease_ms = LEASE_MS } = options;
    const { attempt } = (await this.store.getJob(job.id)) ?? job;
    return this.store.claimAttempt(job.id, attempt, worker, lease_ms, { spec: job.spec, spread });
  }

  /** What a claim got, as `worker: slots`; null when it has to wait. */
  async places(job: Job, worker: string, options: ClaimOptions = {}): Promise<Record<string, number> | null> {
    const result = await this.claim(job, worker, options);
    if (result.granted) return byWorker(result.places);
    if (result.code !== 'waiting_capacity') throw new Error(`refused: ${result.code}`);
    return null;
  }

  async used(): Promise<Record<string, number>> {
    const workers = await this.store.listWorkers();
    return Object.fromEntries(workers.map(({ id, used_slots }) => [id, used_slots]));
  }

  /** Ranks that the pool asks a running job to go down to. */
  async ask(job: Job): Promise<number | null> {
    const { epoch } = (await this.store.getJob(job.id)) ?? job;
    return (await this.store.renewLease(job.id, epoch, LEASE_MS)).ask;
  }

  /** As if the job had waited so much longer. */
  async age(job: Job, minutes: number): Promise<void> {
    await this.redis.hincrby(this.key(`job:${job.id}`), 'queued_since', -minutes * MINUTE_MS);
    await this.redis.zincrby(this.key('pool:default:waiting'), -minutes, job.id);
  }

  /** As if the job's queue entry had been lost. */
  async forget(job: Job): Promise<void> {
    await this.redis.hset(this.key(`job:${job.id}`), 'seen_until', '1');
  }

  key(rest: string): string {
    return `${this.prefix}:${rest}`;
  }
}

export function byWorker(places: readonly Place[]): Record<string, number> {
  return Object.fromEntries(places.map(({ worker_id, slots }) => [worker_id, slots]));
}
