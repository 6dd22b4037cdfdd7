import { modelKey, ZerofleetError } from '../../contracts/index.js';
import { getIfExists } from '../../platform/object-store/common/get-if-exists.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { SPECIAL_TOKENS_FILE, TOKENIZER_CONFIG_FILE, TOKENIZER_FILE } from '../models/documents.js';
import { documentText } from '../models/read-document.js';
import type { TokenizerFiles } from './hf-tokenizer.js';

/** Files of a Hugging Face tokenizer as they are stored; null for one that does not exist. */
export interface TokenizerBytes {
  tokenizer: Uint8Array;
  config: Uint8Array | null;
  special_tokens_map: Uint8Array | null;
}

/**
 * Reads the tokenizer of an uploaded model. @throws ZerofleetError `model_not_found`; as `tokenizerTexts`; errors of
 * the object store
 */
export async function readTokenizer(objects: ObjectStore, model: string): Promise<TokenizerFiles> {
  return tokenizerTexts(await readTokenizerBytes(objects, model));
}

/** @throws ZerofleetError `model_not_found`; errors of the object store */
export async function readTokenizerBytes(objects: ObjectStore, model: string): Promise<TokenizerBytes> {
  const read = (name: string) => getIfExists(objects, `${modelKey(model)}/${name}`);
  const tokenizer = await read(TOKENIZER_FILE);
  if (tokenizer === null)
    throw new ZerofleetError(
      'model_not_found',
      `model ${model} of the tokenizer has no ${TOKENIZER_FILE} or does not exist`,
    );
  return {
    tokenizer,
    config: await read(TOKENIZER_CONFIG_FILE),
    special_tokens_map: await read(SPECIAL_TOKENS_FILE),
  };
}

/** @throws ZerofleetError `tokenizer_invalid` */
export function tokenizerTexts({ tokenizer, config, special_tokens_map }: TokenizerBytes): TokenizerFiles {
  return {
    tokenizer: textOf(TOKENIZER_FILE, tokenizer),
    config: config && textOf(TOKENIZER_CONFIG_FILE, config),
    special_tokens_map: special_tokens_map && textOf(SPECIAL_TOKENS_FILE, special_tokens_map),
  };
}

/**
 * Reads a text file of a tokenizer; null if it does not exist. @throws ZerofleetError `tokenizer_invalid`; errors of
 * the object store
 */
export async function readText(objects: ObjectStore, folder: string, name: string): Promise<string | null> {
  const bytes = await getIfExists(objects, `${folder}/${name}`);
  return bytes && textOf(name, bytes);
}

const textOf = (name: string, bytes: Uint8Array) => documentText(name, bytes, 'tokenizer_invalid');
