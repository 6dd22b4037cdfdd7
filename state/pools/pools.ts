import type { Execution } from '../../contracts/execution.js';
import { type Pool, ZerofleetError } from '../../contracts/index.js';
import { adjust } from '../../scheduler/adjust.js';
import { jobKey, redisCall, type StoreContext, untilUnchanged } from '../core/context.js';
import { inPairs, readSnapshot, slotsOf, type WorkerSlots } from './scheduling.js';

/** A GPU of a worker. */
export interface WorkerGpu {
  uuid: string;
  /** Model, such as "NVIDIA H100 80GB HBM3". */
  name: string;
  memory_bytes: number;
  /** Driver version. */
  driver: string;
  /** Description of a fault; null for a healthy GPU. */
  problem: string | null;
}

/** State that a worker reports about itself. */
export interface WorkerAnnouncement {
  id: string;
  pool: string;
  host: string;
  pid: number;
  /** Number of ranks that it can run at once. */
  slots: number;
  version: string;
  /** IP address at which other workers reach it. */
  address: string;
  /** Machine that it runs on, by the id that the machines' provider uses; null when unknown. */
  machine: string | null;
  /** Domains of the network that contain the machine, the largest first, such as zone and host; empty when unknown. */
  topology: string[];
  /** The worker is about to leave, or unhealthy: it receives no new work. */
  draining: boolean;
  /** Description of a fault; null for a healthy worker. */
  problem: string | null;
  /** Numerics fingerprint of its ranks: equal fingerprints give equal bits; null when unknown. */
  numerics: string | null;
  /** GPUs of its slots, one rank each; empty where ranks run on the CPU. */
  gpus: WorkerGpu[];
  /** GPUs that answer samples. */
  answer_gpus: WorkerGpu[];
  /** Memory of the host that its processes may use. */
  memory_bytes: number;
  /** Longest time in which it expected to save a job that it leads; null before the first save. */
  save_seconds: number | null;
}

export interface WorkerRecord extends WorkerAnnouncement {
  used_slots: number;
  /** Workers with a failed connection to or from this worker: until then the job is not placed on both. */
  avoided: { worker_id: string; job_id: string; until: string }[];
  /** RFC 3339 */
  last_seen: string;
}

interface PoolUse {
  name: string;
  workers: WorkerRecord[];
  /** Jobs that hold slots. */
  running: number;
  /** Jobs that wait for slots. */
  waiting: number;
}

export interface PoolRecord extends PoolUse {
  /** Machines as an autoscaler sees them; null without one. */
  machines: Pool['machines'];
}

/** A pool in the reply of read_pools.lua. */
type RawPool = [name: string, running: number, waiting: number, avoided: string[], ...workers: RawWorker[]];
export type RawWorker = [record: string, seen_at: string, used: number, draining: number, retiring: number];

/**
 * Worker pools: workers, their slots and the allocations of jobs.
 *
 * All slots of a pool are counted in the job store. The scheduler allocates them (scheduling.ts), a claim
 * takes them over (`JobAttempts.claimAttempt`). They are held as long as the claim's lease: the slots of a
 * killed worker become free when the lease expires.
 */
export type PoolSlots = ReturnType<typeof poolSlots>;

export function poolSlots(context: StoreContext) {
  const { commands } = context;
  const read = async (pool?: string) => (await readPools(context, pool)).map(poolOf);

  return {
    /**
     * Chooses the slots for the next generation of a running job (scheduler/adjust.ts). Chooses fewer when
     * fewer were requested or the pool requests preemption. Slots on workers that are gone or draining are
     * replaced.
     * @returns null, without a change, when the job can't have as many ranks as it needs, or has to release
     *   all
     * @throws `stale_epoch`; `job_store_unavailable` when every attempt conflicts with a change of the pool
     */
    adjustPlacements: (jobId: string, execution: Execution): Promise<WorkerSlots[] | null> =>
      untilUnchanged(`the pool of ${jobId}`, async () => {
        const pool = await redisCall(context.redis.hget(jobKey(context, jobId), 'pool'));
        if (pool === null) throw new ZerofleetError('job_not_found', `there is no job ${jobId}`);
        const { version, snapshot } = await readSnapshot(context, pool);
        const placements = adjust(snapshot, jobId)?.map(slotsOf) ?? null;
        if (placements === null) return null;
        const call = { job_id: jobId, execution, version, placements: JSON.stringify(placements) };
        const [done] = await commands.run('set_placements', call);
        return done === '1' ? placements : undefined;
      }),

    /** Registers a worker's slots for the next `ttlMs`; repeat it in time. */
    async announceWorker(worker: WorkerAnnouncement, ttlMs: number): Promise<void> {
      const { id, pool, slots, draining, numerics, topology } = worker;
      await commands.run('announce_worker', {
        worker_id: id,
        pool,
        slots,
        draining,
        numerics: numerics ?? '',
        gpu_bytes: leastMemory(worker),
        topology: JSON.stringify(topology),
        record: JSON.stringify(worker),
        ttl_ms: ttlMs,
      });
    },

    /** Stops allocations on the worker. Idempotent. */
    async withdrawWorker(workerId: string): Promise<void> {
      await commands.run('withdraw_worker', { worker_id: workerId });
    },

    /** Lists live workers by id; of one pool when it is named. */
    async listWorkers(pool?: string): Promise<WorkerRecord[]> {
      return (await read(pool)).flatMap(({ workers }) => workers);
    },

    /** Lists pools that have a worker or a waiting job, by name. */
    async listPools(): Promise<PoolRecord[]> {
      const pools = await read();
      if (pools.length === 0) return [];
      const notes = await redisCall(context.redis.mget(pools.map(({ name }) => machinesKey(context, name))));
      return pools.map((pool, index) => ({ ...pool, machines: JSON.parse(notes[index] ?? 'null') }));
    },
  };
}

/** Key of the machines that an autoscaler has noted. */
export function machinesKey({ prefix }: StoreContext, pool: string): string {
  return `${prefix}:pool:${pool}:machines`;
}

/** Reads all pools that have a worker or a job, or one pool, which may have neither. */
export async function readPools({ commands }: StoreContext, pool?: string): Promise<RawPool[]> {
  return (await commands.run('read_pools', { pool })) as RawPool[];
}

function poolOf([name, running, waiting, avoided, ...workers]: RawPool): PoolUse {
  const pairs = avoidedOf(avoided);
  return { name, running, waiting, workers: workers.map((worker) => workerOf(worker, pairs)) };
}

/** A worker with a failed connection to or from another worker. */
type Avoided = { id: string } & WorkerRecord['avoided'][number];

/** Returns each pair twice, once per worker. */
function avoidedOf(flat: readonly string[]): Avoided[] {
  return inPairs(flat).flatMap(([text, untilMs]) => {
    const [first, second, jobId] = JSON.parse(text) as [string, string, string];
    const until = new Date(Number(untilMs)).toISOString();
    return [
      { id: first, worker_id: second, job_id: jobId, until },
      { id: second, worker_id: first, job_id: jobId, until },
    ];
  });
}

function workerOf([record, seenAt, usedSlots, draining]: RawWorker, pairs: readonly Avoided[]): WorkerRecord {
  const worker: WorkerAnnouncement = JSON.parse(record);
  const lastSeen = new Date(Number(seenAt)).toISOString();
  const avoided = pairs.filter(({ id }) => id === worker.id).map(({ id: _, ...other }) => other);
  return { ...worker, draining: draining === 1, used_slots: usedSlots, avoided, last_seen: lastSeen };
}

/** Returns the memory available to a rank on any GPU of the worker; undefined where ranks run on the CPU. */
function leastMemory({ gpus }: WorkerAnnouncement): number | undefined {
  const healthy = gpus.filter(({ problem }) => problem === null);
  if (gpus.length === 0) return undefined;
  return Math.min(...(healthy.length === 0 ? gpus : healthy).map(({ memory_bytes }) => memory_bytes));
}
