import { isCompressedName } from '../../contracts/dataset-names.js';
import type { Dataset, FieldError, JobSpec } from '../../contracts/index.js';
import type { SourceObject } from '../../platform/content-sources.js';
import { NO_LINES } from '../contents/check-lines.js';
import type { DatasetCopySource } from '../datasets/copies.js';
import { objectFault } from './bucket-faults.js';

type Data = JobSpec['data'];

/** An object's existing copy as a dataset, or the object to copy. */
type FoundObject = { dataset: Dataset } | { object: SourceObject };

export interface DataLookups {
  dataset?(id: string): Promise<Dataset | null>;
  /** Looks an object up without reading it. @throws ZerofleetError when it does not exist or may not be read */
  object?(uri: string, format: Dataset['format']): Promise<FoundObject>;
}

/** An object that must be copied as a dataset before the job can be recorded. */
export interface RequiredObject {
  /** JSON pointer of its URI in the document. */
  at: string;
  /** The URI in the document. */
  given: string;
  source: DatasetCopySource;
}

/** Dataset, or object to copy as one, of a part of the document. */
interface FoundSource {
  /** Dataset for the rule checks; null if nothing is known about it. */
  dataset: Dataset | null;
  copy: RequiredObject | null;
  errors: FieldError[];
}

/** Sources by entry. */
interface FoundSources {
  datasets: (Dataset | null)[];
  copies: (RequiredObject | null)[];
  errors: FieldError[];
}

interface FoundData extends FoundSources {
  /** The data section with datasets instead of URIs; neither where no dataset exists yet. */
  data: Data;
}

interface FoundEntries<T> extends FoundSources {
  /** The entries with a dataset instead of a URI; neither if no dataset exists yet. */
  entries: T[];
}

interface Entry {
  dataset?: string;
  uri?: string;
  format?: Dataset['format'];
}

/** @throws errors of the lookups that are not errors of the document */
export async function findData(given: Data, find: DataLookups): Promise<FoundData> {
  const { dataset, uri, mixture } = given;
  // A session has none.
  if ((dataset ?? uri ?? mixture) === undefined) return { data: given, datasets: [], copies: [], errors: [] };
  const { entries, ...found } = await (mixture === undefined
    ? foundIn([given], [await findSource(given, '/data', find)])
    : findEntries(mixture, '/data/mixture', find));
  const data = mixture === undefined ? (entries[0] as Data) : { ...given, mixture: entries };
  // Assumed to be lines; without a dataset the rules cannot check it.
  const areLines = (mixture ?? [given]).some(
    ({ uri, format }, i) => uri !== undefined && format === 'jsonl' && found.datasets[i] === null,
  );
  return { ...found, data: areLines ? { packing: 'whole', ...data } : data };
}

/**
 * Looks up the datasets of the list at a JSON pointer.
 * @throws errors of the lookups that are not errors of the document
 */
export async function findEntries<T extends Entry>(
  given: readonly T[],
  at: string,
  find: DataLookups,
): Promise<FoundEntries<T>> {
  return foundIn(given, await Promise.all(given.map((entry, i) => findSource(entry, `${at}/${i}`, find))));
}

function foundIn<T extends Entry>(given: readonly T[], found: readonly FoundSource[]): FoundEntries<T> {
  return {
    entries: given.map((entry, i) => withDataset(entry, found[i] as FoundSource)),
    datasets: found.map(({ dataset }) => dataset),
    copies: found.map(({ copy }) => copy),
    errors: found.flatMap(({ errors }) => errors),
  };
}

/** Names the copy of an object; a dataset that was given stays, also if it is unknown. */
function withDataset<T extends Entry>(given: T, { dataset, copy }: FoundSource): T {
  if (given.uri === undefined) return given;
  const { uri: _, format: __, ...rest } = given;
  return (dataset === null || copy !== null ? rest : { ...rest, dataset: dataset.id }) as T;
}

async function findSource(
  { dataset: id = '', uri, format = 'text' }: Entry,
  at: string,
  find: DataLookups,
): Promise<FoundSource> {
  if (uri !== undefined) return findObject(uri, format, `${at}/uri`, find);
  const dataset = (await find.dataset?.(id)) ?? null;
  const errors = find.dataset !== undefined && dataset === null ? [unknownDataset(`${at}/dataset`, id)] : [];
  return { dataset, copy: null, errors };
}

async function findObject(
  uri: string,
  format: Dataset['format'],
  at: string,
  { object: look }: DataLookups,
): Promise<FoundSource> {
  const nothing = { dataset: null, copy: null, errors: [] };
  if (look === undefined) return nothing;
  try {
    const found = await look(uri, format);
    if ('dataset' in found) return { ...nothing, dataset: found.dataset };
    const { object } = found;
    return {
      ...nothing,
      dataset: standIn(format, object),
      copy: { at, given: uri, source: { format, object } },
    };
  } catch (error) {
    return { ...nothing, errors: [objectFault(error, at)] };
  }
}

/** Stand-in dataset with the properties of an unread object; null if too much depends on the content. */
function standIn(format: Dataset['format'], { uri, bytes, etag }: SourceObject): Dataset | null {
  if (format === 'jsonl' || isCompressedName(uri)) return null;
  return {
    id: uri,
    project: '',
    name: '',
    description: '',
    format,
    bytes,
    digest: '',
    source: { uri, etag, bytes },
    num_documents: 1,
    ...NO_LINES,
    num_tokens: format === 'text' ? bytes : null,
    max_token: null,
    created_at: '',
  };
}

function unknownDataset(pointer: string, id: string): FieldError {
  return { pointer, code: 'dataset_not_found', message: `there is no dataset ${id}` };
}
