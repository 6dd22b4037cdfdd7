/** The files of a Hugging Face model's folder that are not weights. */

export const CONFIG_FILE = 'config.json';
export const INDEX_FILE = 'model.safetensors.index.json';
export const TOKENIZER_FILE = 'tokenizer.json';
export const TOKENIZER_CONFIG_FILE = 'tokenizer_config.json';
export const SPECIAL_TOKENS_FILE = 'special_tokens_map.json';
export const CHAT_TEMPLATE_FILE = 'chat_template.jinja';

/** Vocabularies that programs of Hugging Face make a `tokenizer.json` of. They are kept, and not read. */
export const UNREAD_TOKENIZER_FILES = [
  'tokenizer.model',
  'tokenizer.model.v3',
  'spiece.model',
  'sentencepiece.bpe.model',
  'tekken.json',
  'vocab.json',
  'vocab.txt',
  'qwen.tiktoken',
] as const;

/** What a tokenizer consists of. */
export const TOKENIZER_FILES = [
  TOKENIZER_FILE,
  TOKENIZER_CONFIG_FILE,
  SPECIAL_TOKENS_FILE,
  CHAT_TEMPLATE_FILE,
  ...UNREAD_TOKENIZER_FILES,
  'merges.txt',
  'added_tokens.json',
] as const;

/** The vocabularies among the files of a model, where no tokenizer of it can be read. */
export function unreadTokenizer(names: readonly string[]): string[] {
  if (names.includes(TOKENIZER_FILE)) return [];
  return UNREAD_TOKENIZER_FILES.filter((name) => names.includes(name));
}

/** What belongs to a model whatever its weights are: an export of a model that began with it has the same. */
export const COMPANION_FILES = [...TOKENIZER_FILES, 'generation_config.json'] as const;
