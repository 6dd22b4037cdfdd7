import { modelKey, ZerofleetError } from '../../contracts/index.js';
import {
  SPECIAL_TOKENS_FILE,
  TOKENIZER_CONFIG_FILE,
  TOKENIZER_FILE,
} from '../../platform/models/documents.js';
import { getIfThere } from '../../platform/object-store/get-if-there.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import type { TokenizerFiles } from './hf-tokenizer.js';

/** The tokenizer of an uploaded model. @throws ZerofleetError `model_not_found`; errors of the object store */
export async function readTokenizer(objects: ObjectStore, model: string): Promise<TokenizerFiles> {
  const folder = modelKey(model);
  const tokenizer = await readText(objects, `${folder}/${TOKENIZER_FILE}`);
  if (tokenizer === null)
    throw new ZerofleetError(
      'model_not_found',
      `model ${model}, whose tokenizer is needed, has no ${TOKENIZER_FILE} or is gone`,
    );
  return {
    tokenizer,
    config: await readText(objects, `${folder}/${TOKENIZER_CONFIG_FILE}`),
    special_tokens_map: await readText(objects, `${folder}/${SPECIAL_TOKENS_FILE}`),
  };
}

/** An object that is a text; null when there is none. */
export async function readText(objects: ObjectStore, key: string): Promise<string | null> {
  return (await getIfThere(objects, key))?.toString('utf8') ?? null;
}
