import { modelKey, ZerofleetError } from '../../contracts/index.js';
import {
  SPECIAL_TOKENS_FILE,
  TOKENIZER_CONFIG_FILE,
  TOKENIZER_FILE,
} from '../../platform/models/documents.js';
import { documentText } from '../../platform/models/read-document.js';
import { getIfExists } from '../../platform/object-store/common/get-if-exists.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import type { TokenizerFiles } from './hf-tokenizer.js';

/** Reads the tokenizer of an uploaded model. @throws ZerofleetError `model_not_found`; errors of the object store */
export async function readTokenizer(objects: ObjectStore, model: string): Promise<TokenizerFiles> {
  const folder = modelKey(model);
  const tokenizer = await readText(objects, folder, TOKENIZER_FILE);
  if (tokenizer === null)
    throw new ZerofleetError(
      'model_not_found',
      `model ${model} of the tokenizer has no ${TOKENIZER_FILE} or does not exist`,
    );
  return {
    tokenizer,
    config: await readText(objects, folder, TOKENIZER_CONFIG_FILE),
    special_tokens_map: await readText(objects, folder, SPECIAL_TOKENS_FILE),
  };
}

/** Reads a text file of a tokenizer; null if it does not exist. @throws ZerofleetError `tokenizer_invalid`; errors of the object store */
export async function readText(objects: ObjectStore, folder: string, name: string): Promise<string | null> {
  const bytes = await getIfExists(objects, `${folder}/${name}`);
  return bytes && documentText(name, bytes, 'tokenizer_invalid');
}
