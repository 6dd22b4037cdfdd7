/** Files of a Hugging Face model folder other than weights. */

export const CONFIG_FILE = 'config.json';
export const GENERATION_CONFIG_FILE = 'generation_config.json';
export const INDEX_FILE = 'model.safetensors.index.json';
export const TOKENIZER_FILE = 'tokenizer.json';
export const TOKENIZER_CONFIG_FILE = 'tokenizer_config.json';
export const SPECIAL_TOKENS_FILE = 'special_tokens_map.json';
/** Files of an adapter that PEFT writes. */
export const ADAPTER_CONFIG_FILE = 'adapter_config.json';
export const ADAPTER_WEIGHTS_FILE = 'adapter_model.safetensors';
export const CHAT_TEMPLATE_FILE = 'chat_template.jinja';

export const ADDED_TOKENS_FILE = 'added_tokens.json';

/** Models of SentencePiece. The first one becomes the `tokenizer.json` of a folder that has none. */
const SENTENCEPIECE_FILES = ['tokenizer.model', 'tokenizer.model.v3'] as const;

/** Other vocabularies from which Hugging Face programs create a `tokenizer.json`. They are kept but not read. */
const UNREAD_TOKENIZER_FILES = [
  'spiece.model',
  'sentencepiece.bpe.model',
  'tekken.json',
  'vocab.json',
  'vocab.txt',
  'qwen.tiktoken',
] as const;

export function isSentencepiece(name: string): boolean {
  return (SENTENCEPIECE_FILES as readonly string[]).includes(name);
}

/** Files with a whole vocabulary. */
export const VOCABULARY_FILES = [...SENTENCEPIECE_FILES, ...UNREAD_TOKENIZER_FILES, 'merges.txt'] as const;

/** Files of a tokenizer. */
export const TOKENIZER_FILES = [
  TOKENIZER_FILE,
  TOKENIZER_CONFIG_FILE,
  SPECIAL_TOKENS_FILE,
  CHAT_TEMPLATE_FILE,
  ...VOCABULARY_FILES,
  ADDED_TOKENS_FILE,
] as const;

/** Returns the file that a folder's tokenizer is read from; undefined without one. */
export function tokenizerFileIn(names: readonly string[]): string | undefined {
  return [TOKENIZER_FILE, ...SENTENCEPIECE_FILES].find((name) => names.includes(name));
}

/** Returns the vocabularies among the files of a model that has no readable tokenizer. */
export function unreadTokenizer(names: readonly string[]): string[] {
  if (tokenizerFileIn(names) !== undefined) return [];
  return UNREAD_TOKENIZER_FILES.filter((name) => names.includes(name));
}

/**
 * Files that belong to a model independently of its weights; an export of a model initialized from it has the
 * same.
 */
export const COMPANION_FILES = [...TOKENIZER_FILES, GENERATION_CONFIG_FILE] as const;
