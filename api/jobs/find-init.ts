import type { FieldError, JobSpec, Model } from '../../contracts/index.js';
import { type InitFrom, initFromOf } from '../../spec/index.js';
import type { BucketModel } from '../models/bucket-folder.js';
import { folderFault } from './bucket-faults.js';
import { type InitLookup, NO_SOURCE } from './init-source.js';

/** What a folder is: a model that was copied from it as it is now, or files and what is known of the model that they would be. */
export type FoundFolder = { model: Model } | { folder: BucketModel; preview: Model };

export interface InitLookups {
  source?(from: InitFrom): Promise<InitLookup>;
  /** Only looks. @throws ZerofleetError when it is not there, may not be read, or is no model */
  folder?(uri: string): Promise<FoundFolder>;
}

export interface FoundInit extends InitLookup {
  /** What has to become the model first. Its stand-in has no tokenizer that could be looked at. */
  folder: BucketModel | null;
}

const NOTHING: FoundInit = { ...NO_SOURCE, folder: null };

/** @throws what the lookups throw that is no fault of the document */
export async function findInit(given: JobSpec['model'], find: InitLookups): Promise<FoundInit> {
  const init_from = initFromOf(given);
  if (init_from === undefined) return NOTHING;
  if (init_from.uri !== undefined) return findFolder(init_from.uri, given, find);
  return { ...NOTHING, ...(await find.source?.(init_from)) };
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

/** Without a look at the folder nobody knows which model it is. */
function unknownShape({ preset, config }: JobSpec['model']): FieldError[] {
  if (preset !== undefined || config !== undefined) return [];
  const message =
    'no bucket is looked at here: give the content of the config.json of the folder, or ask for a dry run of the job, which reads it';
  return [{ pointer: '/model/config', code: 'missing_field', message }];
}
