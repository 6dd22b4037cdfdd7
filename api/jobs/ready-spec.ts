import type { FastifyReply, FastifyRequest } from 'fastify';
import type { DryRun, FieldError, JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { whileSilent } from '../http/long-request.js';
import { folderFault, objectFault } from './bucket-faults.js';
import { type CheckedSpec, checkSpec, invalidDocument, type SpecLookups } from './check-spec.js';

/**
 * The document as it can be recorded. What it names by URI is copied before, once everything that can be known without it was
 * found good: the data first, because it is smaller, then the model to begin with. Should the job be refused afterwards, for what the
 * content turns out to be or because a quota is reached, the copies stay as a dataset and a model like any other: they were
 * expensive, and the request that follows needs them.
 *
 * @throws ZerofleetError `validation_failed` with all bad fields; `storage_quota_exceeded`, `dataset_source_changed`
 */
export async function readySpec(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    document,
    schemaErrors,
    find: given,
  }: { document: unknown; schemaErrors: FieldError[]; find: SpecLookups },
): Promise<ResolvedJobSpec> {
  let find = lookingOnce(given);
  let checked = await checkSpec(document, schemaErrors, find);
  const { object, folder } = checked.wanted;
  const { datasetCopies, modelCopies } = request.server.services;
  const { project } = request.records;
  if (object !== null) {
    const dataset = await whileSilent(request, reply, (signal) =>
      datasetCopies.datasetOf(project, object, signal).catch(refuse(objectFault)),
    );
    find = { ...find, object: async () => ({ dataset }) };
    checked = await checkSpec(document, schemaErrors, find);
  }
  if (folder !== null) {
    const model = await whileSilent(request, reply, (signal) =>
      modelCopies.modelOf(project, folder, signal).catch(refuse(folderFault)),
    );
    find = { ...find, folder: async () => ({ model }) };
    checked = await checkSpec(document, schemaErrors, find);
  }
  return checked.spec;
}

/** What was seen in a bucket at first is what the whole request is about. */
function lookingOnce({ object, folder, ...find }: SpecLookups): SpecLookups {
  return {
    ...find,
    ...(object && { object: once(object) }),
    ...(folder && { folder: once(folder) }),
  };
}

function once<Args extends unknown[], T>(look: (...args: Args) => Promise<T>) {
  let found: Promise<T> | undefined;
  return (...args: Args): Promise<T> => {
    found ??= look(...args);
    return found;
  };
}

function refuse(faultOf: (error: unknown) => FieldError): (error: unknown) => never {
  return (error) => {
    throw invalidDocument([faultOf(error)]);
  };
}

/** The document that a job would have; what would be copied first has its URI. */
export function plannedSpec({ spec, wanted: { object, folder } }: CheckedSpec): DryRun['spec'] {
  const planned: DryRun['spec'] = { ...spec };
  if (object !== null) {
    const { dataset: _, ...data } = spec.data;
    planned.data = { ...data, uri: object.uri, format: object.format };
  }
  if (folder !== null) {
    const { uri } = folder.source;
    planned.model = { ...spec.model, init_from: { uri } };
    // It would be that of the model, which has no id yet.
    if (spec.data.tokenizer === uri) {
      const { tokenizer: _, ...data } = planned.data;
      planned.data = data;
    }
  }
  return planned;
}

/** Whether a document names anything by URI: such a request is not looked at again when it is repeated. */
export function namesUri(document: unknown): boolean {
  const { data, model } = (document ?? {}) as { data?: unknown; model?: { init_from?: unknown } };
  return hasUri(data) || hasUri(isObject(model) ? model.init_from : undefined);
}

function hasUri(value: unknown): boolean {
  return isObject(value) && typeof (value as Partial<JobSpec['data']>).uri === 'string';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
