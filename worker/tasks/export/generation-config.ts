import type { ResolvedJobSpec } from '../../../contracts/index.js';
import { parseExactly, stringifyExactly } from '../../../contracts/jsonl/exact-json.js';
import { ChatTemplate } from '../../../formats/encoding/chat-template.js';
import { HfTokenizer } from '../../../formats/encoding/hf-tokenizer.js';
import { stopTokens } from '../../../formats/encoding/stop-tokens.js';
import { readTokenizer } from '../../../formats/encoding/tokenizer-store.js';
import { CONFIG_FILE, GENERATION_CONFIG_FILE } from '../../../formats/models/documents.js';
import { documentText, jsonObject } from '../../../formats/models/read-document.js';
import { getIfExists } from '../../../platform/object-store/common/get-if-exists.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';

type Config = Readonly<Record<string, unknown>>;

/**
 * Returns the text of an export's `generation_config.json` if answers of the trained model end at other tokens than its
 * source says; otherwise null. Programs stop at the `eos_token_id` of this file.
 * @param tokenizer the model of the job's tokenizer
 * @param source folder of the initial model; null if it has none
 */
export async function newGenerationConfig(
  objects: ObjectStore,
  { model, data }: ResolvedJobSpec,
  { tokenizer, source }: { tokenizer: string; source: string | null },
): Promise<string | null> {
  const { chat_template, template_date: date } = data;
  const hf = new HfTokenizer(await readTokenizer(objects, tokenizer), false);
  const template =
    chat_template === null ? null : new ChatTemplate(chat_template, { tokens: hf.variables, date });
  const read = (name: string) => (source === null ? null : readConfig(objects, source, name));
  const own = await read(GENERATION_CONFIG_FILE);
  const config = own ?? specialTokens((await read(CONFIG_FILE)) ?? model.config);
  const before = [config.eos_token_id ?? []].flat();
  const added = stopTokens(hf, template).filter((token) => !before.includes(token));
  if (added.length === 0) return null;
  const [first, ...others] = [...before, ...added];
  const eosTokenId = others.length === 0 ? first : [first, ...others];
  return `${stringifyExactly({ ...config, eos_token_id: eosTokenId })}\n`;
}

/** Programs take these from `config.json` where there is no `generation_config.json`. */
function specialTokens({ bos_token_id, eos_token_id, pad_token_id }: Config): Config {
  return { bos_token_id, eos_token_id, pad_token_id };
}

async function readConfig(objects: ObjectStore, folder: string, name: string): Promise<Config | null> {
  const bytes = await getIfExists(objects, `${folder}/${name}`);
  if (bytes === null) return null;
  const text = documentText(name, bytes, 'model_config_invalid');
  jsonObject(name, text, 'model_config_invalid');
  return parseExactly(text) as Config;
}
