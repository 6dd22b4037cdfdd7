import type { FastifyRequest } from 'fastify';
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { misfitOf } from '../../control/scheduling/gpu-fit.js';

/** Refuses a job that fits on none of the GPUs that workers of its pool report. @throws ZerofleetError `does_not_fit` */
export async function requireFit(
  { server }: Pick<FastifyRequest, 'server'>,
  spec: ResolvedJobSpec,
): Promise<void> {
  const memoryShortfall = misfitOf(spec, await server.services.store.listWorkers(spec.resources.pool));
  if (memoryShortfall !== null) throw memoryShortfall;
}

/** Document of a job that is requested to run on at most `wanted` ranks. */
export function withRanks(spec: ResolvedJobSpec, wanted: number): ResolvedJobSpec {
  const { ranks } = spec.resources;
  const range = { min: Math.min(ranks.min, wanted), max: wanted, preferred: wanted };
  return { ...spec, resources: { ...spec.resources, ranks: range } };
}
