import type { PoolRecord } from '../../platform/job-store/index.js';
import type { OperationHandler } from './types.js';

export const listPools: OperationHandler<'listPools'> = async (request) => {
  const pools = await request.server.services.store.listPools();
  return { data: pools.map(summaryOf) };
};

export const listWorkers: OperationHandler<'listWorkers'> = async (request) => ({
  data: await request.server.services.store.listWorkers(request.query.pool),
});

function summaryOf({ name, workers, running, waiting }: PoolRecord) {
  return {
    name,
    workers: workers.length,
    slots: workers.reduce((sum, { slots }) => sum + slots, 0),
    used_slots: workers.reduce((sum, { used_slots }) => sum + used_slots, 0),
    running,
    waiting,
  };
}
