import type { FastifyRequest } from 'fastify';
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { misfitOf } from '../../control/scheduling/gpu-fit.js';

/**
 * Refuses a job that fits on none of the GPUs of its pool, as far as workers are there to say.
 * @throws ZerofleetError `does_not_fit`
 */
export async function requireFit(
  { server }: Pick<FastifyRequest, 'server'>,
  spec: ResolvedJobSpec,
): Promise<void> {
  const misfit = misfitOf(spec, await server.services.store.listWorkers(spec.resources.pool));
  if (misfit !== null) throw misfit;
}

/** The document of a job that is asked to run on so many ranks: as many at most. */
export function withRanks(spec: ResolvedJobSpec, wanted: number): ResolvedJobSpec {
  const { ranks } = spec.resources;
  const range = { min: Math.min(ranks.min, wanted), max: wanted, preferred: wanted };
  return { ...spec, resources: { ...spec.resources, ranks: range } };
}
