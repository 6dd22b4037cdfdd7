/** A pool for tests: its workers, its jobs, and time that passes at once. */
import { Redis } from 'ioredis';
import type { Test } from 'tap';
import { ulid } from 'ulid';
import type { Job, JobSpec } from '../../contracts/index.js';
import type { TestRedis } from '../../platform/testing/redis.js';
import { place } from '../../scheduler/place.js';
import type { Decision } from '../../scheduler/types.js';
import { type JobStore, openJobStore } from '../job-store.js';
import type { ClaimOptions, GrantedClaim } from '../jobs/attempts.js';
import type { WorkerAnnouncement } from '../pools/pools.js';
import type { WorkerSlots } from '../pools/scheduling.js';
import { executionAt, noteExecutions } from './executions.js';
import { createTestJob } from './jobs.js';
import { testWorker } from './workers.js';

const LEASE_MS = 60_000;
const MINUTE_MS = 60_000;

interface PoolJobOptions {
  min?: number;
  /** Number of requested ranks. */
  ranks?: number;
  priority?: number;
  project?: string;
}

/** Runs the scheduler once for a pool. Returns the jobs that began, and the reasons why the others wait. */
export async function decide(store: JobStore, pool = 'default', growIntervalMs = 0): Promise<Decision> {
  const { version, snapshot } = await store.readSnapshot(pool, growIntervalMs);
  const decision = place(snapshot);
  const options = { claim_ms: LEASE_MS, waiting: [...decision.waiting.keys()] };
  if (!(await store.applyDecision(pool, version, decision, options)))
    throw new Error('the pool changed while it was decided');
  return decision;
}

/**
 * Runs the scheduler for the job's pool and claims the job's allocation, as its leader does. Returns null without an
 * allocation.
 */
export async function claimAllocated(
  store: JobStore,
  { id }: Pick<Job, 'id'>,
  leaseMs = LEASE_MS,
  options: Pick<ClaimOptions, 'price_per_rank_hour'> = {},
): Promise<GrantedClaim | null> {
  const job = await store.getJob(id);
  if (!job) throw new Error(`there is no job ${id}`);
  const { pool } = job.spec.resources;
  await decide(store, pool);
  const { snapshot } = await store.readSnapshot(pool, 0);
  const leader = snapshot.running.find((running) => running.id === id)?.placements[0]?.worker_id;
  if (leader === undefined) return null;
  const claim = await store.claimAttempt(id, job.attempt, leader, leaseMs, { allocated: true, ...options });
  if (!claim.granted) throw new Error(claim.code);
  return claim;
}

export class TestPool {
  private constructor(
    readonly store: JobStore,
    readonly redis: Redis,
    private readonly prefix: string,
  ) {}

  /**
   * Opens a pool whose workers have the given numbers of slots. @param numerics fingerprints of the workers that have
   * one
   */
  static async open(
    t: Test,
    server: TestRedis,
    workers: Readonly<Record<string, number>>,
    numerics: Readonly<Record<string, string>> = {},
  ): Promise<TestPool> {
    const prefix = `{${ulid()}}`;
    const store = noteExecutions(await openJobStore({ url: server.url, prefix }));
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

  /** Creates a queued job with eight leaves. */
  async job({ min = 1, ranks = min, priority = 0, project }: PoolJobOptions = {}): Promise<Job> {
    const spec: Partial<JobSpec> = {
      ...(project !== undefined && { project }),
      priority,
      resources: { ranks: { min, preferred: ranks, max: 8 } },
      train: { steps: 100, global_batch_size: 32, micro_batch_size: 4 },
    };
    return createTestJob(this.store, spec);
  }

  decide(growIntervalMs = 0): Promise<Decision> {
    return decide(this.store, 'default', growIntervalMs);
  }

  /** Runs the scheduler and claims the job's allocation. Returns null when the job has to wait. */
  claim(job: Job, leaseMs = LEASE_MS): Promise<GrantedClaim | null> {
    return claimAllocated(this.store, job, leaseMs);
  }

  /** Returns the slots that a claim got, as `worker: slots`; null when the job has to wait. */
  async placements(job: Job): Promise<Record<string, number> | null> {
    const claim = await this.claim(job);
    return claim && byWorker(claim.placements);
  }

  async used(): Promise<Record<string, number>> {
    const workers = await this.store.listWorkers();
    return Object.fromEntries(workers.map(({ id, used_slots }) => [id, used_slots]));
  }

  /** Returns the ranks of the preemption request to a running job. */
  async preemptionRequest(job: Job): Promise<number | null> {
    const { epoch } = (await this.store.getJob(job.id)) ?? job;
    return (await this.store.renewLease(job.id, executionAt(job.id, epoch), LEASE_MS)).preemption_request;
  }

  /** Makes the job's wait longer by a number of minutes. */
  async age(job: Job, minutes: number): Promise<void> {
    const key = this.key('pool:default:waiting-jobs');
    const demand = JSON.parse((await this.redis.hget(key, job.id)) ?? '{}');
    demand.queued_at -= minutes * MINUTE_MS;
    await this.redis.hset(key, job.id, JSON.stringify(demand));
    await this.redis.hincrby(this.key(`job:${job.id}`), 'queued_since', -minutes * MINUTE_MS);
    await this.redis.zincrby(this.key('pool:default:waiting'), -minutes, job.id);
  }

  key(rest: string): string {
    return `${this.prefix}:${rest}`;
  }
}

export function byWorker(placements: readonly WorkerSlots[]): Record<string, number> {
  return Object.fromEntries(placements.map(({ worker_id, slots }) => [worker_id, slots]));
}
