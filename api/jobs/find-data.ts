import type { Dataset, FieldError, JobSpec } from '../../contracts/index.js';
import type { SourceObject } from '../../platform/object-store/s3/source.js';
import type { DatasetCopySource } from '../datasets/copies.js';
import { objectFault } from './bucket-faults.js';

/** An object's existing copy as a dataset, or the object to copy. */
export type FoundObject = { dataset: Dataset } | { object: SourceObject };

export interface DataLookups {
  dataset?(id: string): Promise<Dataset | null>;
  /** Looks an object up without reading it. @throws ZerofleetError when it does not exist or may not be read */
  object?(uri: string, format: Dataset['format']): Promise<FoundObject>;
}

export interface FoundData {
  /** The data section with a dataset instead of a URI; neither if no dataset exists yet. */
  data: JobSpec['data'];
  /** Dataset for the rule checks; null if nothing is known about it. */
  dataset: Dataset | null;
  copy: DatasetCopySource | null;
  errors: FieldError[];
}

/** @throws errors of the lookups that are not errors of the document */
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
  // Assumed to be lines; without a dataset the rules cannot check it.
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

/** Stand-in dataset with the properties of an unread object; null if too much depends on the content. */
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
