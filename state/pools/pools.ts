import { ZerofleetError } from '../../contracts/index.js';
import { adjust } from '../../scheduler/adjust.js';
import { jobKey, redisCall, type StoreContext, untilUnchanged } from '../core/context.js';
import type { PoolSlots, PoolUse, WorkerAnnouncement, WorkerRecord } from './pools-port.js';
import { inPairs, readSnapshot, slotsOf } from './scheduling.js';

/** A pool in the reply of read_pools.lua. */
type RawPool = [name: string, running: number, waiting: number, avoided: string[], ...workers: RawWorker[]];
export type RawWorker = [record: string, seen_at: string, used: number, draining: number, retiring: number];

export function poolSlots(context: StoreContext): PoolSlots {
  const { commands } = context;
  const read = async (pool?: string) => (await readPools(context, pool)).map(poolOf);

  return {
    adjustPlacements: (jobId, execution) =>
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

    async announceWorker(worker, ttlMs) {
      const { id, pool, slots, draining, numerics } = worker;
      await commands.run('announce_worker', {
        worker_id: id,
        pool,
        slots,
        draining,
        numerics: numerics ?? '',
        gpu_bytes: leastMemory(worker),
        record: JSON.stringify(worker),
        ttl_ms: ttlMs,
      });
    },

    async withdrawWorker(workerId) {
      await commands.run('withdraw_worker', { worker_id: workerId });
    },

    async listWorkers(pool) {
      return (await read(pool)).flatMap(({ workers }) => workers);
    },

    async listPools() {
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
  return inPairs(flat).flatMap(([text, until_ms]) => {
    const [first, second, job_id] = JSON.parse(text) as [string, string, string];
    const until = new Date(Number(until_ms)).toISOString();
    return [
      { id: first, worker_id: second, job_id, until },
      { id: second, worker_id: first, job_id, until },
    ];
  });
}

function workerOf(
  [record, seen_at, used_slots, draining]: RawWorker,
  pairs: readonly Avoided[],
): WorkerRecord {
  const worker: WorkerAnnouncement = JSON.parse(record);
  const last_seen = new Date(Number(seen_at)).toISOString();
  const avoided = pairs.filter(({ id }) => id === worker.id).map(({ id: _, ...other }) => other);
  return { ...worker, draining: draining === 1, used_slots, avoided, last_seen };
}

/** Returns the memory available to a rank on any GPU of the worker; undefined where ranks run on the CPU. */
function leastMemory({ gpus }: WorkerAnnouncement): number | undefined {
  const healthy = gpus.filter(({ problem }) => problem === null);
  if (gpus.length === 0) return undefined;
  return Math.min(...(healthy.length === 0 ? gpus : healthy).map(({ memory_bytes }) => memory_bytes));
}
