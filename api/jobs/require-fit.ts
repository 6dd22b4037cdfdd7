import type { FastifyRequest } from 'fastify';
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { budgetOf, misfitOf } from '../../control/scheduling/gpu-fit.js';
import type { SpecLookups } from './check-spec.js';

/**
 * Refuses a job that fits on none of the GPUs that workers of its pool report. @throws ZerofleetError
 * `insufficient_memory`
 */
export async function requireFit(
  { server }: Pick<FastifyRequest, 'server'>,
  spec: ResolvedJobSpec,
): Promise<void> {
  const error = misfitOf(spec, await server.services.store.listWorkers(spec.resources.pool));
  if (error !== null) throw error;
}

/** Look-up of the memory that a rank of a pool has. */
export function rankBudget({ server }: Pick<FastifyRequest, 'server'>): NonNullable<SpecLookups['budget']> {
  return async (pool) => budgetOf(await server.services.store.listWorkers(pool));
}

/** Document of a job that is requested to run on at most `maxRanks` ranks. */
export function withRanks(spec: ResolvedJobSpec, maxRanks: number): ResolvedJobSpec {
  const { ranks } = spec.resources;
  const range = { min: Math.min(ranks.min, maxRanks), max: maxRanks, preferred: maxRanks };
  return { ...spec, resources: { ...spec.resources, ranks: range } };
}
