import type { FieldError, JobSpec, Model } from '../../contracts/index.js';
import { type InitFrom, initFromOf } from '../../job-document/index.js';
import type { BucketModel } from '../models/bucket-folder.js';
import { folderFault } from './bucket-faults.js';
import { type InitLookup, NO_SOURCE } from './init-source.js';

/** A folder's existing copy as a model, or its files and a preview of the model. */
type FoundFolder = { model: Model } | { folder: BucketModel; preview: Model };

export interface InitLookups {
  source?(from: InitFrom): Promise<InitLookup>;
  /**
   * Looks a folder up without reading its weights. @throws ZerofleetError when it does not exist, may not be read, or
   * is not a model
   */
  folder?(uri: string): Promise<FoundFolder>;
}

interface FoundInit extends InitLookup {
  /** Folder that must be copied first. Its stand-in has no tokenizer. */
  folder: BucketModel | null;
}

const NOTHING: FoundInit = { ...NO_SOURCE, folder: null };

/** @throws errors of the lookups that are not errors of the document */
export async function findInit(given: JobSpec['model'], find: InitLookups): Promise<FoundInit> {
  const initFrom = initFromOf(given);
  if (initFrom === undefined) return NOTHING;
  if (initFrom.uri !== undefined) return findFolder(initFrom.uri, given, find);
  return { ...NOTHING, ...(await find.source?.(initFrom)) };
}

async function findFolder(uri: string, given: JobSpec['model'], find: InitLookups): Promise<FoundInit> {
  if (find.folder === undefined) return { ...NOTHING, errors: unknownShape(given) };
  try {
    const found = await find.folder(uri);
    if ('model' in found) return { ...NOTHING, source: found };
    return { ...NOTHING, source: { model: found.preview }, folder: found.folder };
  } catch (error) {
    return { ...NOTHING, errors: [folderFault(error)] };
  }
}

/** Error for a document whose model shape is known only from a folder that is not read. */
function unknownShape({ preset, config }: JobSpec['model']): FieldError[] {
  if (preset !== undefined || config !== undefined) return [];
  const message =
    "buckets are not read here: give the content of the folder's config.json, or request a dry run of the job, which reads it";
  return [{ pointer: '/model/config', code: 'missing_field', message }];
}
