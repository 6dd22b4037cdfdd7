/** The files of a Hugging Face model's folder that are not weights. */

export const CONFIG_FILE = 'config.json';
export const INDEX_FILE = 'model.safetensors.index.json';
export const TOKENIZER_FILE = 'tokenizer.json';
export const TOKENIZER_CONFIG_FILE = 'tokenizer_config.json';
export const CHAT_TEMPLATE_FILE = 'chat_template.jinja';

/** What a tokenizer consists of. */
export const TOKENIZER_FILES = [
  TOKENIZER_FILE,
  TOKENIZER_CONFIG_FILE,
  'special_tokens_map.json',
  CHAT_TEMPLATE_FILE,
] as const;

/** What belongs to a model whatever its weights are: an export of a model that began with it has the same. */
export const COMPANION_FILES = [...TOKENIZER_FILES, 'generation_config.json'] as const;
