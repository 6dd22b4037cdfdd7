import { redisCall, type StoreContext } from './context.js';
import type { WorkerAnnouncement } from './pools-port.js';
import type { JobDemandRecord, PoolDemand, Scaling, WorkerUse } from './scaling-port.js';

const DAY_MS = 24 * 3600 * 1000;

/** A pool as read_demand.lua answers it. */
type RawPool = [
  name: string,
  jobs: RawJob[],
  workers: RawWorker[],
  quotas: [project: string, max_ranks: number][],
];
type RawJob = [
  id: string,
  project: string,
  priority: number,
  need: number,
  want: number,
  multiple: number,
  held: number,
];
type RawWorker = [record: string, busy: number, draining: number, retiring: number, free: number];

export function scaling({ commands, redis, prefix }: StoreContext): Scaling {
  const drained = `${prefix}:drained`;
  return {
    async readDemand(pools) {
      return ((await commands.run('read_demand', { pools })) as RawPool[]).map(poolOf);
    },

    async retireWorkers(workerIds) {
      return (await commands.run('retire_workers', { worker_ids: workerIds })) as string[];
    },

    async lead(office, holder, ttlMs, memory) {
      const call = { office, holder, ttl_ms: ttlMs, memory };
      const [leads, text] = (await commands.run('lead', call)) as [string, string];
      return leads === '1' ? { leads: true, memory: text } : { leads: false, holder: text };
    },

    async reportDrained(machine) {
      await redisCall(redis.zadd(drained, String(Date.now() + DAY_MS), machine));
    },

    async drainedMachines() {
      await redisCall(redis.zremrangebyscore(drained, '-inf', String(Date.now())));
      return redisCall(redis.zrange(drained, 0, '-1'));
    },
  };
}

function poolOf([name, jobs, workers, quotas]: RawPool): PoolDemand {
  return {
    name,
    jobs: jobs.map(jobOf),
    workers: workers.map(workerOf),
    quotas: Object.fromEntries(quotas),
  };
}

function jobOf([id, project, priority, need, want, multiple, held]: RawJob): JobDemandRecord {
  return { id, project, priority, need, want, multiple, held };
}

function workerOf([record, busy, draining, retiring, free]: RawWorker): WorkerUse {
  const { id, machine, slots, numerics }: WorkerAnnouncement = JSON.parse(record);
  // Records of earlier versions name no machine and no numerics.
  return {
    id,
    machine: machine ?? null,
    numerics: numerics ?? null,
    slots,
    free,
    busy: busy === 1,
    draining: draining === 1,
    retiring: retiring === 1,
  };
}
