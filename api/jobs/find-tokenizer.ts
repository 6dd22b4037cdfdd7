import type { Dataset, FieldError, JobSpec, Model } from '../../contracts/index.js';
import { type InitSource, resolveTokenizer, tokenizerModel } from '../../spec/index.js';
import type { BucketModel } from '../models/bucket-folder.js';
import type { BucketTokenizer } from '../models/bucket-tokenizers.js';
import { tokenizerFault } from './bucket-faults.js';

/** What an object is: a tokenizer that was copied before, or one that was read and what is known of the copy that there will be. */
export type FoundTokenizerObject = { model: Model } | { object: BucketTokenizer; preview: Model };

export interface TokenizerLookups {
  model?(id: string): Promise<Model | null>;
  /** @throws ZerofleetError when it is not there, may not be read, or is no tokenizer */
  tokenizer?(uri: string): Promise<FoundTokenizerObject>;
}

export interface FoundTokenizer {
  /** The data with the id of a copy instead of a URI, where there is a copy. */
  data: JobSpec['data'];
  /** The model whose tokenizer is used; null where none is, or none can be looked up. */
  tokenizer: Model | null;
  /** What has to be copied first. */
  copy: BucketTokenizer | null;
  errors: FieldError[];
}

interface Sources {
  dataset: Dataset | null;
  source: InitSource | null;
  /** What has to become the model to begin with, whose tokenizer nobody has read. */
  folder: BucketModel | null;
}

/** @throws what the lookups throw that is no fault of the document */
export async function findTokenizer(
  data: JobSpec['data'],
  sources: Sources,
  find: TokenizerLookups,
): Promise<FoundTokenizer> {
  const { source, folder } = sources;
  const nothing = { data, tokenizer: null, copy: null, errors: [] };
  const id = tokenizerModel({ tokenizer: resolveTokenizer(data, sources) });
  if (id === null) return nothing;
  if (data.tokenizer === id && isUri(id)) return findObject(id, data, find);
  // What was not copied yet has a tokenizer that nobody has read; the rules about it wait.
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

export function isUri(text: unknown): text is string {
  return typeof text === 'string' && text.startsWith('s3://');
}

function unknownTokenizer(id: string, { tokenizer }: JobSpec['data']): FieldError {
  const why = tokenizer ? '' : ', whose tokenizer the job of the checkpoint had; name another one';
  return { pointer: '/data/tokenizer', code: 'model_not_found', message: `there is no model ${id}${why}` };
}
