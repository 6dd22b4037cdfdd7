import type { Pool } from '../../../contracts/index.js';
import type { PoolRecord, WorkerRecord } from '../../../state/index.js';
import type { OperationHandler } from '../types.js';

type Group = Pool['groups'][number];

export const listPools: OperationHandler<'listPools'> = async (request) => {
  const pools = await request.server.services.store.listPools();
  return { data: pools.map(summaryOf) };
};

export const listWorkers: OperationHandler<'listWorkers'> = async (request) => ({
  data: await request.server.services.store.listWorkers(request.query.pool),
});

/** Prometheus metrics: the process's own, and the current state of the pools. */
export const getMetrics: OperationHandler<'getMetrics'> = async (request, reply) => {
  const { store, metrics } = request.server.services;
  const pools = await store.listPools();
  const { type, text } = await metrics.scrape(pools.map(summaryOf));
  return reply.type(type).send(text);
};

function summaryOf({ name, workers, running, waiting, machines }: PoolRecord): Pool {
  return { name, ...countSlots(workers), running, waiting, groups: groupsOf(workers), machines };
}

function countSlots(workers: readonly WorkerRecord[]) {
  return {
    workers: workers.length,
    slots: workers.reduce((sum, { slots }) => sum + slots, 0),
    used_slots: workers.reduce((sum, { used_slots }) => sum + used_slots, 0),
  };
}

function groupsOf(workers: readonly WorkerRecord[]): Group[] {
  const all = new Map<string | null, WorkerRecord[]>();
  for (const worker of workers) all.set(worker.numerics, [...(all.get(worker.numerics) ?? []), worker]);
  return [...all]
    .sort(([a], [b]) => (a ?? '').localeCompare(b ?? ''))
    .map(([numerics, members]) => ({ numerics, ...countSlots(members), gpus: gpusOf(members) }));
}

function gpusOf(workers: readonly WorkerRecord[]): Group['gpus'] {
  const kinds = new Map<string, Group['gpus'][number]>();
  for (const { name, memory_bytes, problem } of workers.flatMap(({ gpus }) => gpus)) {
    const kind = `${name} ${memory_bytes}`;
    const known = kinds.get(kind) ?? { name, memory_bytes, count: 0, unhealthy: 0 };
    known.count += 1;
    known.unhealthy += problem === null ? 0 : 1;
    kinds.set(kind, known);
  }
  return [...kinds.values()];
}
