import { neededRanks } from '../../scheduler/demand.js';
import { countRanks } from '../../scheduler/order.js';
import { vacate } from '../../scheduler/vacate.js';
import { projects } from '../access/projects.js';
import { nowText, redisCall, type StoreContext, serverTime, untilUnchanged } from '../core/context.js';
import { machinesKey, type RawWorker, readPools } from './pools.js';
import type { WorkerAnnouncement } from './pools-port.js';
import type { PoolDemand, Scaling, WorkerUse } from './scaling-port.js';
import { placementsText, readSnapshot } from './scheduling.js';

const DAY_MS = 24 * 3600 * 1000;
/** Longer than a leader's lease: the next leader records them again. */
const MACHINES_SECONDS = 120;

export function scaling(context: StoreContext): Scaling {
  const { commands, redis, prefix } = context;
  const drained = `${prefix}:drained`;
  return {
    readDemand: (pools) => Promise.all(pools.map((pool) => readDemand(context, pool))),

    async retireWorkers(workerIds, { busy = false } = {}) {
      return (await commands.run('retire_workers', { worker_ids: workerIds, busy })) as string[];
    },

    async noteMachines(pool, machines) {
      const text = JSON.stringify(machines);
      await redisCall(redis.set(machinesKey(context, pool), text, 'EX', MACHINES_SECONDS));
    },

    async explainWait(job_id, reason, message) {
      await commands.run('explain_wait', { job_id, reason, message, at: nowText() });
    },

    vacateWorkers: (pool, workerIds) =>
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

    async acquireLeaderLease(name, holder, ttlMs, state) {
      const call = { name, holder, ttl_ms: ttlMs, state };
      const [leads, text] = (await commands.run('acquire_leader_lease', call)) as [string, string];
      return leads === '1' ? { leads: true, state: text } : { leads: false, holder: text };
    },

    async reportDrained(machine) {
      const now = await serverTime(context);
      await redisCall(
        redis
          .multi()
          .zremrangebyscore(drained, '-inf', now - DAY_MS)
          .zadd(drained, String(now), machine)
          .exec(),
      );
    },

    async drainedMachines() {
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
    quotas: Object.fromEntries(quotas.filter(([, max_ranks]) => max_ranks !== null)),
  };
}

function workerOf([record, , used, draining, retiring]: RawWorker): WorkerUse {
  const { id, machine, slots, numerics }: WorkerAnnouncement = JSON.parse(record);
  return {
    id,
    machine,
    numerics,
    slots,
    free: draining === 1 ? 0 : Math.max(0, slots - used),
    busy: used > 0,
    draining: draining === 1,
    retiring: retiring === 1,
  };
}
