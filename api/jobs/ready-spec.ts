import type { FastifyReply, FastifyRequest } from 'fastify';
import { type DryRun, type FieldError, isSourceUri, type ResolvedJobSpec } from '../../contracts/index.js';
import { whileSilent } from '../http/long-request.js';
import { folderFault, objectFault, tokenizerFault } from './bucket-faults.js';
import {
  type CheckedSpec,
  checkSpec,
  invalidDocument,
  type RequiredCopies,
  type SpecLookups,
} from './check-spec.js';
import type { RequiredObject } from './find-data.js';

/**
 * Returns a document that can be recorded. Contents that it refers to by URI are copied first, after all other checks
 * have passed: smaller ones first, the initial model last. If the content or a quota then refuses the job, the copies
 * stay as ordinary datasets and models. They were expensive, and the next request needs them.
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
    const made = await whileSilent(request, reply, (signal) => copy(signal, find));
    find = { ...find, ...made };
    checked = await checkSpec(document, schemaErrors, find);
  }
  return checked.spec;
}

/** Makes a copy and returns look-ups that find it in place of its source. */
type MakeCopy = (signal: AbortSignal, find: SpecLookups) => Promise<Partial<SpecLookups>>;

function copiesOf(
  { training, evaluation, tokenizer, folder }: RequiredCopies,
  { server, records: { project } }: FastifyRequest,
): MakeCopy[] {
  const { datasetCopies, modelCopies } = server.services;
  const makes: MakeCopy[] = [];
  for (const required of [...training, ...evaluation]) {
    if (required === null) continue;
    const { at, given, source } = required;
    makes.push(async (signal, { object: look }) => {
      const copy = datasetCopies.datasetOf(project, source, signal);
      const dataset = await copy.catch(refuse((error) => objectFault(error, at)));
      const isSource = (uri: string, format: string) => uri === given && format === source.format;
      return look
        ? { object: async (...request) => (isSource(...request) ? { dataset } : look(...request)) }
        : {};
    });
  }
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

/** Caches look-ups of sources for the duration of a request. */
function withCachedLookups({ object, tokenizer, folder, ...find }: SpecLookups): SpecLookups {
  return {
    ...find,
    ...(object && { object: once(object) }),
    ...(tokenizer && { tokenizer: once(tokenizer) }),
    ...(folder && { folder: once(folder) }),
  };
}

/** Returns a look-up that remembers its answers. */
export function once<Args extends unknown[], T>(look: (...args: Args) => Promise<T>) {
  const found = new Map<string, Promise<T>>();
  return (...args: Args): Promise<T> => {
    const key = JSON.stringify(args);
    const known = found.get(key) ?? look(...args);
    found.set(key, known);
    return known;
  };
}

function refuse(faultOf: (error: unknown) => FieldError): (error: unknown) => never {
  return (error) => {
    throw invalidDocument([faultOf(error)]);
  };
}

/** Document of the planned job; contents not copied yet keep their URI. */
export function plannedSpec({ spec, requiredCopies }: CheckedSpec): DryRun['spec'] {
  const { training, evaluation: copies, folder } = requiredCopies;
  const planned: DryRun['spec'] = { ...spec };
  const { evaluation } = spec.train;
  planned.data = plannedData(spec.data, training);
  if (evaluation !== undefined) {
    const datasets = evaluation.datasets.map((entry, i) => notCopied(entry, copies[i] ?? null));
    planned.train = { ...spec.train, evaluation: { ...evaluation, datasets } };
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

function plannedData(
  data: ResolvedJobSpec['data'],
  copies: RequiredCopies['training'],
): DryRun['spec']['data'] {
  if (data.mixture === undefined) return notCopied(data, copies[0] ?? null);
  return { ...data, mixture: data.mixture.map((entry, i) => notCopied(entry, copies[i] ?? null)) };
}

function notCopied<T extends { dataset?: string }>(entry: T, required: RequiredObject | null) {
  if (required === null) return entry;
  const { dataset: _, ...rest } = entry;
  const { format, object } = required.source;
  return { ...rest, uri: object.uri, format };
}

/**
 * True if a document refers to anything by URI. A repetition of such a request is answered without checking it again.
 */
export function namesUri(document: unknown): boolean {
  const data = member(document, 'data');
  const initFrom = member(member(document, 'model'), 'init_from');
  const evaluated = member(member(member(document, 'train'), 'evaluation'), 'datasets');
  const listed = [member(data, 'mixture'), evaluated].flatMap((list) => (Array.isArray(list) ? list : []));
  const named = [member(data, 'uri'), member(data, 'tokenizer'), initFrom, member(initFrom, 'uri')];
  return [...named, ...listed.map((entry) => member(entry, 'uri'))].some(isSourceUri);
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
