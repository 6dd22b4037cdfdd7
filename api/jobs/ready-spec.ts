import type { FastifyReply, FastifyRequest } from 'fastify';
import type { DryRun, FieldError, ResolvedJobSpec } from '../../contracts/index.js';
import { whileSilent } from '../http/long-request.js';
import { folderFault, objectFault, tokenizerFault } from './bucket-faults.js';
import { type CheckedSpec, checkSpec, invalidDocument, type SpecLookups, type Wanted } from './check-spec.js';
import { isUri } from './find-tokenizer.js';

/**
 * The document as it can be recorded. What it names by URI is copied before, once everything that can be known without it was
 * found good: the smaller things first, the model to begin with last. Should the job be refused afterwards, for what the
 * content turns out to be or because a quota is reached, the copies stay as datasets and models like any other: they were
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
  for (const copy of copiesOf(checked.wanted, request)) {
    find = { ...find, ...(await whileSilent(request, reply, copy)) };
    checked = await checkSpec(document, schemaErrors, find);
  }
  return checked.spec;
}

/** What makes a copy, and then finds it in place of what it was copied from. */
type MakeCopy = (signal: AbortSignal) => Promise<Partial<SpecLookups>>;

function copiesOf(
  { object, tokenizer, folder }: Wanted,
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

/** What was seen in a bucket at first is what the whole request is about. */
function lookingOnce({ object, tokenizer, folder, ...find }: SpecLookups): SpecLookups {
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
  const data = member(document, 'data');
  const init_from = member(member(document, 'model'), 'init_from');
  const named = [member(data, 'uri'), member(data, 'tokenizer'), init_from, member(init_from, 'uri')];
  return named.some(isUri);
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
