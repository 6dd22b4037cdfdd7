import type { Pool } from '../../contracts/index.js';
import type { PoolRecord } from '../../platform/job-store/index.js';
import type { OperationHandler } from './types.js';

export const listPools: OperationHandler<'listPools'> = async (request) => {
  const pools = await request.server.services.store.listPools();
  return { data: pools.map(summaryOf) };
};

export const listWorkers: OperationHandler<'listWorkers'> = async (request) => ({
  data: await request.server.services.store.listWorkers(request.query.pool),
});

/** For Prometheus: the process's own counts, and the pools as they are now. */
export const getMetrics: OperationHandler<'getMetrics'> = async (request, reply) => {
  const { store, metrics } = request.server.services;
  const pools = await store.listPools();
  const { type, text } = await metrics.scrape(pools.map(summaryOf));
  return reply.type(type).send(text);
};

function summaryOf({ name, workers, running, waiting }: PoolRecord): Pool {
  return {
    name,
    workers: workers.length,
    slots: workers.reduce((sum, { slots }) => sum + slots, 0),
    used_slots: workers.reduce((sum, { used_slots }) => sum + used_slots, 0),
    running,
    waiting,
  };
}
