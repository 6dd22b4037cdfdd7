import type { Estimate, FieldError, ResolvedJobSpec } from '../../../contracts/index.js';
import { checkMultiple, maxWorldSize } from '../../../job-document/index.js';
import { bodyErrors } from '../../http/body-errors.js';
import { invalidDocument, tryResolve } from '../../jobs/check-spec.js';
import { findSource, NO_SOURCE } from '../../jobs/init-source.js';
import { rankBudget } from '../../jobs/require-fit.js';
import { templateFault } from '../../jobs/template-fault.js';
import type { OperationHandler } from '../types.js';

export const estimateMemory: OperationHandler<'estimateMemory'> = async (request): Promise<Estimate> => {
  const { ofSpec, others } = errorsOfSpec(bodyErrors(request));
  // A body that is not an object contains no document.
  if (others.some(({ pointer }) => pointer === '')) throw invalidDocument(others);
  const { spec: document, world_sizes, device, threads, instruction_set } = request.body;
  const { contract, objects, inspector } = request.server.services;
  const { project } = request.records;
  const stores = { store: request.records, objects };
  const { spec, errors } = await tryResolve(document, ofSpec, {
    project,
    schemaErrors: contract.jobSpecErrors,
    template: templateFault(request),
    budget: rankBudget(request),
    // A model may be the only source of the parameters; a checkpoint never is.
    source: async (from) => (from.model === undefined ? NO_SOURCE : findSource(stores, from)),
  });
  const all = [...others, ...errors.map((error) => ({ ...error, pointer: `/spec${error.pointer}` }))];
  if (spec !== null && others.length === 0) all.push(...impossibleSizes(spec, world_sizes));
  if (spec === null || all.length > 0) throw invalidDocument(all);
  const machine = { device, threads, instruction_set };
  return inspector.run('estimateMemory', { spec, machine, sizes: world_sizes }, { owner: project });
};

/** Errors of the job document, with pointers into it, and errors of the rest of the body. */
function errorsOfSpec(errors: readonly FieldError[]): { ofSpec: FieldError[]; others: FieldError[] } {
  const isOfSpec = ({ pointer }: FieldError) => /^\/spec(\/|$)/.test(pointer);
  return {
    ofSpec: errors
      .filter(isOfSpec)
      .map((error) => ({ ...error, pointer: error.pointer.slice('/spec'.length) })),
    others: errors.filter((error) => !isOfSpec(error)),
  };
}

function impossibleSizes(spec: ResolvedJobSpec, worldSizes: readonly number[] = []): FieldError[] {
  const most = maxWorldSize(spec);
  return worldSizes.flatMap((size, index): FieldError[] => {
    const pointer = `/world_sizes/${index}`;
    if (size <= most) return checkMultiple(pointer, size, spec.zero.expert_parallel_size);
    const message = `${size} ranks, but the job's arithmetic is cut into ${most} parts only`;
    return [{ pointer, code: 'too_many_ranks', message, suggestion: String(most) }];
  });
}
