import {
  type Dataset,
  type FieldError,
  isSourceUri,
  type JobSpec,
  type Model,
} from '../../contracts/index.js';
import { type InitSource, resolveTokenizer, tokenizerModel } from '../../job-document/index.js';
import type { BucketModel } from '../models/bucket-folder.js';
import type { BucketTokenizer } from '../models/bucket-tokenizers.js';
import { tokenizerFault } from './bucket-faults.js';

/** An object's existing copy, or the object that was read and a preview of its copy. */
type FoundTokenizerObject = { model: Model } | { object: BucketTokenizer; preview: Model };

export interface TokenizerLookups {
  model?(id: string): Promise<Model | null>;
  /** @throws ZerofleetError when it does not exist, may not be read, or is not a tokenizer */
  tokenizer?(uri: string): Promise<FoundTokenizerObject>;
}

interface FoundTokenizer {
  /** The data section with the id of a copy instead of a URI, if a copy exists. */
  data: JobSpec['data'];
  /** Model whose tokenizer is used; null if there is none or it cannot be looked up. */
  tokenizer: Model | null;
  /** Object that must be copied first. */
  copy: BucketTokenizer | null;
  errors: FieldError[];
}

interface Sources {
  datasets: readonly (Dataset | null)[];
  source: InitSource | null;
  /** Folder of the initial model, whose tokenizer is not read yet. */
  folder: BucketModel | null;
}

/** @throws errors of the lookups that are not errors of the document */
export async function findTokenizer(
  data: JobSpec['data'],
  sources: Sources,
  find: TokenizerLookups,
): Promise<FoundTokenizer> {
  const { source, folder } = sources;
  const nothing = { data, tokenizer: null, copy: null, errors: [] };
  const id = tokenizerModel({ tokenizer: resolveTokenizer(data, sources) });
  if (id === null) return nothing;
  if (data.tokenizer === id && isSourceUri(id)) return findObject(id, data, find);
  // The tokenizer of a folder that is not copied is unknown; its rules are checked after the copy.
  if (source !== null && 'model' in source && source.model.id === id)
    return { ...nothing, tokenizer: folder === null || !source.model.has_tokenizer ? source.model : null };
  const tokenizer = (await find.model?.(id)) ?? null;
  const unknown = find.model !== undefined && tokenizer === null;
  return { ...nothing, tokenizer, errors: unknown ? [unknownTokenizer(id, data)] : [] };
}

async function findObject(
  uri: string,
  data: JobSpec['data'],
  { tokenizer: look }: TokenizerLookups,
): Promise<FoundTokenizer> {
  const nothing = { data, tokenizer: null, copy: null, errors: [] };
  if (look === undefined) return nothing;
  try {
    const found = await look(uri);
    if ('object' in found) return { ...nothing, tokenizer: found.preview, copy: found.object };
    const { model } = found;
    return { ...nothing, data: { ...data, tokenizer: model.id }, tokenizer: model };
  } catch (error) {
    return { ...nothing, errors: [tokenizerFault(error)] };
  }
}

function unknownTokenizer(id: string, { tokenizer }: JobSpec['data']): FieldError {
  const why = tokenizer ? '' : ", the tokenizer of the checkpoint's job; name another one";
  return { pointer: '/data/tokenizer', code: 'model_not_found', message: `there is no model ${id}${why}` };
}
