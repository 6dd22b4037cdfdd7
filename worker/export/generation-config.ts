import type { ResolvedJobSpec } from '../../contracts/index.js';
import { ChatTemplate } from '../../platform/encoding/chat-template.js';
import { HfTokenizer } from '../../platform/encoding/hf-tokenizer.js';
import { stopTokens } from '../../platform/encoding/stop-tokens.js';
import { readTokenizer } from '../../platform/encoding/tokenizer-store.js';
import { CONFIG_FILE, GENERATION_CONFIG_FILE } from '../../platform/models/documents.js';
import { jsonObject } from '../../platform/models/read-document.js';
import { getIfExists } from '../../platform/object-store/common/get-if-exists.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import type { Companion } from './model-source.js';

type Config = Readonly<Record<string, unknown>>;

/**
 * Returns the `generation_config.json` of an export if answers of the trained model end at other tokens than its source says: programs stop
 * at the `eos_token_id` of this file.
 * @param tokenizer the model of the job's tokenizer
 * @param source folder of the initial model; null if it has none
 */
export async function newGenerationConfig(
  objects: ObjectStore,
  { model, data }: ResolvedJobSpec,
  { tokenizer, source }: { tokenizer: string; source: string | null },
): Promise<Companion[]> {
  const { chat_template, template_date: date } = data;
  const hf = new HfTokenizer(await readTokenizer(objects, tokenizer), false);
  const template =
    chat_template === null ? null : new ChatTemplate(chat_template, { tokens: hf.variables, date });
  const read = (name: string) => (source === null ? null : readConfig(objects, source, name));
  const own = await read(GENERATION_CONFIG_FILE);
  const config = own ?? specialTokens((await read(CONFIG_FILE)) ?? model.config);
  const before = [config.eos_token_id ?? []].flat();
  const added = stopTokens(hf, template).filter((token) => !before.includes(token));
  if (added.length === 0) return [];
  const [first, ...others] = [...before, ...added];
  const eos_token_id = others.length === 0 ? first : [first, ...others];
  const content = async function* () {
    yield Buffer.from(`${JSON.stringify({ ...config, eos_token_id }, null, 2)}\n`);
  };
  return [{ name: GENERATION_CONFIG_FILE, content }];
}

/** Programs take these from `config.json` where there is no `generation_config.json`. */
function specialTokens({ bos_token_id, eos_token_id, pad_token_id }: Config): Config {
  return { bos_token_id, eos_token_id, pad_token_id };
}

async function readConfig(objects: ObjectStore, folder: string, name: string): Promise<Config | null> {
  const bytes = await getIfExists(objects, `${folder}/${name}`);
  return bytes && jsonObject(name, Buffer.from(bytes).toString('utf8'), 'model_config_invalid');
}
