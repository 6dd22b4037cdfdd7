import type { Pool } from '../../contracts/index.js';
import { neededRanks } from '../../scheduler/demand.js';
import { countRanks } from '../../scheduler/order.js';
import type { Snapshot } from '../../scheduler/types.js';
import { vacate } from '../../scheduler/vacate.js';
import { projects } from '../access/projects.js';
import { nowText, redisCall, type StoreContext, serverTime, untilUnchanged } from '../core/context.js';
import { machinesKey, type RawWorker, readPools, type WorkerAnnouncement } from './pools.js';
import { placementsText, readSnapshot } from './scheduling.js';

/** Machines of a pool, by type, and why requested ones do not come. */
type PoolMachines = NonNullable<Pool['machines']>;

/** Demand of one job on its pool, in ranks. */
export interface JobDemandRecord {
  id: string;
  project: string;
  priority: number;
  /** Minimum and maximum number of ranks that it would run on now, and the divisor of that number. */
  need: number;
  want: number;
  multiple: number;
  /** Ranks that it holds; 0 for a waiting job. */
  held: number;
}

/** A live worker. */
export interface WorkerUse {
  id: string;
  /** Machine that it runs on; null when unknown. */
  machine: string | null;
  /** Numerics fingerprint of its ranks; all ranks of a job have the same. */
  numerics: string | null;
  slots: number;
  /** Slots that no job holds and new work may use. */
  free: number;
  /** True when a job holds slots on it. */
  busy: boolean;
  /** It receives no new work. */
  draining: boolean;
  /** Draining because of a call of `retireWorkers` or `vacateWorkers`. */
  retiring: boolean;
  /** Longest time in which it expected to save a job that it leads; null before the first save. */
  save_seconds: number | null;
}

interface PoolDemand {
  name: string;
  /** Jobs that hold ranks, then waiting and delayed jobs by the beginning of their wait. */
  jobs: JobDemandRecord[];
  workers: WorkerUse[];
  /** The scheduler's view of the pool. */
  scheduling: Snapshot;
  /** Quota of ranks of each project in `jobs` that has one. */
  quotas: Record<string, number>;
}

type LeaderLease = { leads: true; state: string } | { leads: false; holder: string };

const DAY_MS = 24 * 3600 * 1000;
/** Longer than a leader's lease: the next leader records them again. */
const MACHINES_SECONDS = 120;

/** Methods for the autoscaler: the demand of pools, and the removal of machines. */
export type Scaling = ReturnType<typeof scaling>;

export function scaling(context: StoreContext) {
  const { commands, redis, prefix } = context;
  const drained = `${prefix}:drained`;
  return {
    /**
     * Reads the demand of pools, sorted by name. A worker's state may be read a moment later than the jobs.
     */
    readDemand: (pools: readonly string[]): Promise<PoolDemand[]> =>
      Promise.all(pools.map((pool) => readDemand(context, pool))),

    /**
     * Stops new work on all of the workers if none of them is busy. All or none, atomically.
     * @param options `busy`: also on workers with jobs, which the caller asks to save and return them
     * @returns the busy workers; empty: all are retired. Unknown workers are neither
     */
    async retireWorkers(
      workerIds: readonly string[],
      { busy = false }: { busy?: boolean } = {},
    ): Promise<string[]> {
      return (await commands.run('retire_workers', { worker_ids: workerIds, busy })) as string[];
    },

    /** Records the machines of a pool as the autoscaler sees them, for `listPools`. Kept for two minutes. */
    async noteMachines(pool: string, machines: PoolMachines): Promise<void> {
      const text = JSON.stringify(machines);
      await redisCall(redis.set(machinesKey(context, pool), text, 'EX', MACHINES_SECONDS));
    },

    /**
     * Adds an event `job.waiting` to a job that waits: the reason for which no machines are requested for it.
     */
    async explainWait(jobId: string, reason: string, message: string): Promise<void> {
      await commands.run('explain_wait', { job_id: jobId, reason, message, at: nowText() });
    },

    /**
     * Stops new work on the workers and moves their jobs to other workers of the pool at their next step
     * boundary. The slots there are reserved at once. All or none, atomically.
     * @returns false, without a change, if the ranks do not fit elsewhere now (`vacate` of scheduler/)
     */
    vacateWorkers: (pool: string, workerIds: readonly string[]): Promise<boolean> =>
      untilUnchanged(`pool ${pool}`, async () => {
        const { version, snapshot } = await readSnapshot(context, pool);
        const moves = vacate(snapshot, workerIds);
        if (moves === null) return false;
        const calls = moves.map(({ job_id, placements }) => ({
          job_id,
          placements: placementsText(placements),
        }));
        const [done] = await commands.run('vacate_workers', {
          pool,
          version,
          worker_ids: workerIds,
          moves: calls,
        });
        return done === '1' ? true : undefined;
      }),

    /**
     * Acquires or renews a leader lease for `ttlMs`; 0 releases it.
     * @param state state of the leader, which the next leader receives; undefined keeps the present one
     */
    async acquireLeaderLease(
      name: string,
      holder: string,
      ttlMs: number,
      state?: string,
    ): Promise<LeaderLease> {
      const call = { name, holder, ttl_ms: ttlMs, state };
      const [leads, text] = (await commands.run('acquire_leader_lease', call)) as [string, string];
      return leads === '1' ? { leads: true, state: text } : { leads: false, holder: text };
    },

    /** Records that a machine is drained and may be terminated. Kept for a day. */
    async reportDrained(machine: string): Promise<void> {
      const now = await serverTime(context);
      await redisCall(
        redis
          .multi()
          .zremrangebyscore(drained, '-inf', now - DAY_MS)
          .zadd(drained, String(now), machine)
          .exec(),
      );
    },

    /** Lists drained machines. */
    async drainedMachines(): Promise<string[]> {
      const now = await serverTime(context);
      return redisCall(redis.zrangebyscore(drained, now - DAY_MS, '+inf'));
    },
  };
}

async function readDemand(context: StoreContext, name: string): Promise<PoolDemand> {
  const { snapshot, delayed } = await readSnapshot(context, name);
  const [[, , , , ...workers] = []] = await readPools(context, name);
  // Approximate order: fair share among projects is decided when slots are free.
  const waiting = [...snapshot.waiting, ...delayed].sort((a, b) => a.queued_at - b.queued_at);
  const jobs = [
    ...snapshot.running.map((job) => ({ ...job, held: countRanks(job.placements) })),
    ...waiting.map((job) => ({ ...job, held: 0 })),
  ].map(({ id, project, priority, demand, held }) => {
    const { want, multiple } = demand;
    return { id, project, priority, need: neededRanks(demand, snapshot.workers), want, multiple, held };
  });
  const { getQuota } = projects(context);
  const names = [...new Set(jobs.map(({ project }) => project))];
  const quotas = await Promise.all(
    names.map(async (project) => [project, (await getQuota(project)).max_ranks]),
  );
  return {
    name,
    scheduling: snapshot,
    jobs,
    workers: workers.map(workerOf),
    quotas: Object.fromEntries(quotas.filter(([, maxRanks]) => maxRanks !== null)),
  };
}

function workerOf([record, , used, draining, retiring]: RawWorker): WorkerUse {
  const { id, machine, slots, numerics, save_seconds }: WorkerAnnouncement = JSON.parse(record);
  return {
    id,
    machine,
    numerics,
    slots,
    free: draining === 1 ? 0 : Math.max(0, slots - used),
    busy: used > 0,
    draining: draining === 1,
    retiring: retiring === 1,
    save_seconds,
  };
}
