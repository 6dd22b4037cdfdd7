import type { FastifyRequest } from 'fastify';
import { type FieldError, type Sweep, type SweepPlan, ZerofleetError } from '../../../contracts/index.js';
import { newUlid } from '../../../platform/random.js';
import { putSweepRuns, type StoredSweep } from '../../../state/index.js';
import { found, notFound } from '../../access/found.js';
import { bodyErrors } from '../../http/body-errors.js';
import { specLookups } from '../../jobs/changes/create-job.js';
import { invalidDocument } from '../../jobs/check-spec.js';
import { cancelledSweep, hasEnded, pausedSweep, resumedSweep } from '../../sweeps/advance.js';
import { checkRuns, documentPointer, readyRuns, touches } from '../../sweeps/check-runs.js';
import { keepSweep } from '../../sweeps/keep-sweep.js';
import { planRuns } from '../../sweeps/plan.js';
import { comparisonOf } from '../../sweeps/rungs.js';
import type { OperationHandler, OperationRequest } from '../types.js';

/** Label of the jobs of a sweep. */
const LABEL = 'sweep';

export const createSweep: OperationHandler<'createSweep'> = async (
  request,
  reply,
): Promise<Sweep | SweepPlan> => {
  const errors = bodyErrors(request).filter((error) => isOfRequest(error, request.body));
  if (errors.length > 0) throw invalidDocument(errors);
  const id = `swp_${newUlid()}`;
  const planned = planRuns(request.body, { [LABEL]: id });
  if (planned.errors.length > 0) throw invalidDocument(planned.errors);
  const { runs } = planned;
  const find = specLookups(request);
  const specs = await checkRuns(request, runs, find);
  const comparison = comparisonOf(request.body, specs);
  if ('errors' in comparison) throw invalidDocument(comparison.errors);
  if (request.query.dry_run) {
    reply.code(200);
    return { ...comparison, runs: runs.map(({ name, values }) => ({ name, values })) };
  }
  const ready = await readyRuns(request, reply, { runs, find });
  const sweep = newSweep(request, { id, runs, comparison });
  const { store, objects } = request.server.services;
  const documents = sweep.runs.flatMap(({ job_id }, i) => {
    const [spec, given] = [ready[i], runs[i]?.document];
    return spec && given ? [{ job_id, spec, given }] : [];
  });
  await putSweepRuns(objects, id, documents);
  const { project, name } = sweep;
  const stored: StoredSweep = { id, project, name, bytes: 0, sweep, tasks: {} };
  await store.putSweep(stored);
  await keepSweep({ store, objects }, stored);
  reply.code(201).header('location', `/v1/sweeps/${id}`);
  return sweep;
};

/** The checks of the runs report errors of the fields that they vary. */
function isOfRequest({ pointer }: FieldError, body: OperationRequest<'createSweep'>['body']): boolean {
  if (!pointer.startsWith('/spec/')) return true;
  const inSpec = pointer.slice('/spec'.length);
  return !Object.keys(body.space ?? {}).some((field) => touches(inSpec, documentPointer(field)));
}

function newSweep(
  { body, records }: Pick<OperationRequest<'createSweep'>, 'body' | 'records'>,
  {
    id,
    runs,
    comparison,
  }: {
    id: string;
    runs: readonly Pick<SweepPlan['runs'][number], 'name' | 'values'>[];
    comparison: Pick<SweepPlan, 'metric' | 'rungs'>;
  },
): Sweep {
  const { spec, space, method = 'grid', seed = 0, max_concurrent = 4 } = body;
  const now = Date.now();
  const planned = runs.map(({ name, values }, i) => ({
    // Ids sort in the order of the runs.
    job_id: `job_${newUlid(now + i)}`,
    ...{ name, values, state: 'waiting' as const, rung: 0, evaluations: [], failure: null },
  }));
  return {
    id,
    name: body.name ?? spec.name ?? 'sweep',
    project: records.project,
    state: 'running',
    ...{ method, seed, max_concurrent, space, spec, ...comparison },
    ...{ runs: planned, best: null, problem: null },
    ...{ created_at: new Date(now).toISOString(), ended_at: null },
  };
}

export const listSweeps: OperationHandler<'listSweeps'> = ({ server, records, query }) =>
  server.services.store.listSweeps({ ...query, project: records.project });

export const getSweep: OperationHandler<'getSweep'> = async (request) =>
  (await findSweep(request, request.params.sweep_id)).sweep;

export const deleteSweep: OperationHandler<'deleteSweep'> = async (request, reply) => {
  const { sweep_id: id } = request.params;
  const stored = await findSweep(request, id);
  if (!hasEnded(stored.sweep) || Object.keys(stored.tasks).length > 0)
    throw new ZerofleetError('sweep_unfinished', `${id} is ${stored.sweep.state}; cancel it first`);
  const { store, objects } = request.server.services;
  if (!(await store.deleteSweep(id))) throw notFound('sweep', id);
  await keepSweep({ store, objects }, stored);
  return reply.code(204).send();
};

export const cancelSweep: OperationHandler<'cancelSweep'> = async (request, reply) => {
  const at = new Date().toISOString();
  reply.code(202);
  return change(request, 'cancelled', (before) => cancelledSweep(before, at));
};

export const pauseSweep: OperationHandler<'pauseSweep'> = async (request, reply) => {
  reply.code(202);
  return change(request, null, pausedSweep);
};

export const resumeSweep: OperationHandler<'resumeSweep'> = async (request, reply) => {
  reply.code(202);
  return change(request, null, resumedSweep);
};

/** @param repeated final state in which the request changes nothing */
async function change(
  request: Pick<FastifyRequest, 'server' | 'records'> & { params: { sweep_id: string } },
  repeated: Sweep['state'] | null,
  make: (before: StoredSweep) => StoredSweep,
): Promise<Sweep> {
  const { sweep_id: id } = request.params;
  await findSweep(request, id);
  const { store, objects } = request.server.services;
  const changed = await store.updateSweep(id, (before) => {
    const { state } = before.sweep;
    if (!hasEnded(before.sweep)) return make(before);
    if (state === repeated) return before;
    throw new ZerofleetError('sweep_final', `${id} is ${state}`);
  });
  const stored = found(changed, 'sweep', id);
  await keepSweep({ store, objects }, stored);
  return stored.sweep;
}

async function findSweep(
  { server, records }: Pick<FastifyRequest, 'server' | 'records'>,
  id: string,
): Promise<StoredSweep> {
  return found(await server.services.store.getSweep(records.project, id), 'sweep', id);
}
