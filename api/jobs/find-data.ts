import type { Dataset, FieldError, JobSpec } from '../../contracts/index.js';
import type { SourceObject } from '../../platform/object-store/s3/source.js';
import type { WantedCopy } from '../datasets/copies.js';
import { objectFault } from './bucket-faults.js';

/** What an object is: a dataset that was copied from it as it is now, or nothing yet. */
export type FoundObject = { dataset: Dataset } | { object: SourceObject };

export interface DataLookups {
  dataset?(id: string): Promise<Dataset | null>;
  /** Only looks. @throws ZerofleetError when it is not there, or may not be read */
  object?(uri: string, format: Dataset['format']): Promise<FoundObject>;
}

export interface FoundData {
  /** The data with a dataset instead of a URI, and without either where there is none yet. */
  data: JobSpec['data'];
  /** What the rules about the data are checked with; null where nothing is known of it. */
  dataset: Dataset | null;
  copy: WantedCopy | null;
  errors: FieldError[];
}

/** @throws what the lookups throw that is no fault of the document */
export async function findData(given: JobSpec['data'], find: DataLookups): Promise<FoundData> {
  const { uri, format = 'text', ...rest } = given;
  if (uri !== undefined) return findObject({ uri, format, rest }, find);
  const { dataset: id = '' } = given;
  const dataset = (await find.dataset?.(id)) ?? null;
  const errors = find.dataset !== undefined && dataset === null ? [unknownDataset(id)] : [];
  return { data: given, dataset, copy: null, errors };
}

async function findObject(
  { uri, format, rest }: { uri: string; format: Dataset['format']; rest: JobSpec['data'] },
  { object: look }: DataLookups,
): Promise<FoundData> {
  // As a dataset of lines would be read; without one the rules can't know.
  const data: JobSpec['data'] = format === 'jsonl' ? { packing: 'whole', ...rest } : rest;
  const nothing = { data, dataset: null, copy: null, errors: [] };
  if (look === undefined) return nothing;
  try {
    const found = await look(uri, format);
    if ('dataset' in found) {
      const { dataset } = found;
      return { ...nothing, data: { ...rest, dataset: dataset.id }, dataset };
    }
    const { object } = found;
    return { ...nothing, dataset: standIn(uri, format, object), copy: { uri, format, object } };
  } catch (error) {
    return { ...nothing, errors: [objectFault(error)] };
  }
}

/** As much of a dataset as an object tells without being read; null where too much depends on the content. */
function standIn(uri: string, format: Dataset['format'], { bytes, etag }: SourceObject): Dataset | null {
  if (format === 'jsonl') return null;
  return {
    id: uri,
    project: '',
    name: '',
    description: '',
    format,
    bytes,
    digest: '',
    source: { uri, etag },
    num_documents: 1,
    num_chats: 0,
    num_tokens: format === 'text' ? bytes : null,
    max_token: null,
    created_at: '',
  };
}

function unknownDataset(id: string): FieldError {
  return { pointer: '/data/dataset', code: 'dataset_not_found', message: `there is no dataset ${id}` };
}
