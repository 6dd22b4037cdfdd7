import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FieldError, ResolvedJobSpec } from '../../contracts/index.js';
import { invalidDocument, type SpecLookups, tryResolve } from '../jobs/check-spec.js';
import { once, readySpec } from '../jobs/ready-spec.js';
import { requireFit } from '../jobs/require-fit.js';
import { escaped, namesIn, type PlannedRun, pointerOf } from './plan.js';

const MAX_ERRORS = 20;

/**
 * Resolves the documents of all runs.
 * @throws ZerofleetError `validation_failed` with the bad fields of all runs; `insufficient_memory`
 */
export async function checkRuns(
  request: FastifyRequest,
  runs: readonly PlannedRun[],
  given: SpecLookups,
): Promise<ResolvedJobSpec[]> {
  const find = cached(given);
  const specs: ResolvedJobSpec[] = [];
  const errors = new Map<string, FieldError>();
  for (const run of runs) {
    const found = await tryResolve(run.document, find.schemaErrors(run.document), find);
    if (found.spec !== null) specs.push(found.spec);
    for (const error of found.errors.map((one) => inRequest(one, run)))
      errors.set(`${error.pointer} ${error.code}`, errors.get(`${error.pointer} ${error.code}`) ?? error);
    if (errors.size >= MAX_ERRORS) break;
  }
  if (errors.size > 0) throw invalidDocument([...errors.values()]);
  for (const spec of specs) await requireFit(request, spec);
  return specs;
}

/** Returns the documents with which the jobs are recorded; contents that they name by URI are copied. */
export async function readyRuns(
  request: FastifyRequest,
  reply: FastifyReply,
  { runs, find }: { runs: readonly PlannedRun[]; find: SpecLookups },
): Promise<ResolvedJobSpec[]> {
  const ready: ResolvedJobSpec[] = [];
  for (const { document } of runs)
    ready.push(await readySpec(request, reply, { document, schemaErrors: [], find }));
  return ready;
}

/** The documents of the runs name mostly the same objects. */
function cached(find: SpecLookups): SpecLookups {
  const { template, dataset, source, object, tokenizer, folder } = find;
  return {
    ...find,
    template: once(template),
    ...(dataset && { dataset: once(dataset) }),
    ...(source && { source: once(source) }),
    ...(object && { object: once(object) }),
    ...(tokenizer && { tokenizer: once(tokenizer) }),
    ...(folder && { folder: once(folder) }),
  };
}

/** Moves an error of a document to the field of the space that caused it, or to the document of all runs. */
function inRequest(error: FieldError, { values }: PlannedRun): FieldError {
  const field = Object.keys(values).find((one) => touches(error.pointer, documentPointer(one)));
  if (field === undefined) return { ...error, pointer: `/spec${error.pointer}` };
  return {
    ...error,
    pointer: pointerOf(field),
    message: `${field} = ${JSON.stringify(values[field])}: ${error.message}`,
  };
}

/** Returns the pointer of a field in the job document. */
export function documentPointer(field: string): string {
  return namesIn(field)
    .map((name) => `/${escaped(name)}`)
    .join('');
}

/** True if one of two pointers contains the other. */
export function touches(a: string, b: string): boolean {
  return `${a}/`.startsWith(`${b}/`) || `${b}/`.startsWith(`${a}/`);
}
