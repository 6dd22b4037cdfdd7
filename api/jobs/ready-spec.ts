import type { FastifyReply, FastifyRequest } from 'fastify';
import type { DryRun, FieldError, ResolvedJobSpec } from '../../contracts/index.js';
import { whileSilent } from '../http/long-request.js';
import { folderFault, objectFault, tokenizerFault } from './bucket-faults.js';
import {
  type CheckedSpec,
  checkSpec,
  invalidDocument,
  type RequiredCopies,
  type SpecLookups,
} from './check-spec.js';
import { isUri } from './find-tokenizer.js';

/**
 * Returns a document that can be recorded. Contents that it refers to by URI are copied first, after all other checks have
 * passed: smaller ones first, the initial model last. If the job is refused afterwards because of the content or a quota, the
 * copies stay as ordinary datasets and models: they were expensive, and the following request needs them.
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
  let find = withCachedLookups(given);
  let checked = await checkSpec(document, schemaErrors, find);
  for (const copy of copiesOf(checked.requiredCopies, request)) {
    find = { ...find, ...(await whileSilent(request, reply, copy)) };
    checked = await checkSpec(document, schemaErrors, find);
  }
  return checked.spec;
}

/** Makes a copy and returns look-ups that find it in place of its source. */
type MakeCopy = (signal: AbortSignal) => Promise<Partial<SpecLookups>>;

function copiesOf(
  { object, tokenizer, folder }: RequiredCopies,
  { server, records: { project } }: FastifyRequest,
): MakeCopy[] {
  const { datasetCopies, modelCopies } = server.services;
  const makes: MakeCopy[] = [];
  if (object !== null)
    makes.push(async (signal) => {
      const copy = datasetCopies.datasetOf(project, object, signal);
      const dataset = await copy.catch(refuse(objectFault));
      return { object: async () => ({ dataset }) };
    });
  if (tokenizer !== null)
    makes.push(async (signal) => {
      const copy = modelCopies.tokenizerOf(project, tokenizer, signal);
      const model = await copy.catch(refuse(tokenizerFault));
      return { tokenizer: async () => ({ model }) };
    });
  if (folder !== null)
    makes.push(async (signal) => {
      const model = await modelCopies.modelOf(project, folder, signal).catch(refuse(folderFault));
      return { folder: async () => ({ model }) };
    });
  return makes;
}

/** Caches bucket look-ups for the duration of a request. */
function withCachedLookups({ object, tokenizer, folder, ...find }: SpecLookups): SpecLookups {
  return {
    ...find,
    ...(object && { object: once(object) }),
    ...(tokenizer && { tokenizer: once(tokenizer) }),
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

/** Document of the planned job; contents not copied yet keep their URI. */
export function plannedSpec({ spec, requiredCopies: { object, folder } }: CheckedSpec): DryRun['spec'] {
  const planned: DryRun['spec'] = { ...spec };
  if (object !== null) {
    const { dataset: _, ...data } = spec.data;
    planned.data = { ...data, uri: object.uri, format: object.format };
  }
  if (folder !== null) {
    const { uri } = folder.source;
    planned.model = { ...spec.model, init_from: { uri } };
    // It would contain the id of a model that does not exist yet.
    if (spec.data.tokenizer === uri) {
      const { tokenizer: _, ...data } = planned.data;
      planned.data = data;
    }
  }
  return planned;
}

/** True if a document refers to anything by URI. A repetition of such a request is answered without checking it again. */
export function namesUri(document: unknown): boolean {
  const data = member(document, 'data');
  const init_from = member(member(document, 'model'), 'init_from');
  const named = [member(data, 'uri'), member(data, 'tokenizer'), init_from, member(init_from, 'uri')];
  return named.some(isUri);
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
