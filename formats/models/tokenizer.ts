/** Properties of a Hugging Face tokenizer, read from its files. */
import { ZerofleetError } from '../../contracts/index.js';
import type { Tokenizer } from '../tokenizer/tokenizer.js';

/**
 * The largest vocabularies have some hundred thousand tokens; readers allocate tables as long as the largest
 * id.
 */
const MAX_VOCAB_SIZE = 1 << 24;

/** Old files have no model type. */
const MODEL_TYPES: readonly unknown[] = ['BPE', 'WordPiece', 'Unigram', undefined];

/**
 * Returns the largest id of a `tokenizer.json` plus one, added tokens included; it need not equal the number
 * of tokens.
 * @throws ZerofleetError `tokenizer_invalid`
 */
export function vocabSizeOf({ model, added_tokens = [] }: Readonly<Record<string, unknown>>): number {
  if (typeof model !== 'object' || model === null) throw invalid('it has no model');
  const { type, vocab } = model as Record<string, unknown>;
  if (!MODEL_TYPES.includes(type))
    throw invalid(`its model has the type ${shown(type)}; supported are BPE, WordPiece and Unigram`);
  let size = 0;
  const add = (id: unknown, token: unknown) => {
    if (typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id >= MAX_VOCAB_SIZE)
      throw invalid(
        `its token ${shown(token)} has the id ${shown(id)}, which is not an integer from 0 to ${MAX_VOCAB_SIZE - 1}`,
      );
    size = Math.max(size, id + 1);
  };
  // A Unigram vocabulary is a list of tokens with scores, indexed by id.
  if (Array.isArray(vocab)) size = vocab.length;
  else if (typeof vocab === 'object' && vocab !== null)
    for (const [token, id] of Object.entries(vocab)) add(id, token);
  else throw invalid('its model has no vocab');
  if (!Array.isArray(added_tokens)) throw invalid('its added_tokens are not a list');
  for (const token of added_tokens as unknown[]) {
    const { id, content } = (token ?? {}) as Record<string, unknown>;
    add(id, content);
  }
  if (size === 0) throw invalid('it has no tokens');
  return size;
}

/**
 * Returns the chat template of a model, or null.
 * @param config `tokenizer_config.json`, where the template is a text or one of several with names
 * @param file `chat_template.jinja`, which takes precedence
 */
export function chatTemplateOf(config: Readonly<Record<string, unknown>>, file?: string): string | null {
  const { chat_template: found } = config;
  const named = Array.isArray(found) ? (found as unknown[]).map((entry) => (entry ?? {}) as Named) : [];
  const template = file ?? named.find(({ name }) => name === 'default')?.template ?? found;
  return typeof template === 'string' && template !== '' ? template : null;
}

/** Special tokens that templates use by name. */
const NAMED_TOKENS = ['bos_token', 'eos_token', 'pad_token', 'unk_token'] as const;

/**
 * Returns special tokens by name. Entries of `tokenizer_config.json`, including null, take precedence over
 * `special_tokens_map.json`. If neither names the tokens that begin and end a text, they are the single ones
 * that the post-processor adds.
 */
export function specialTokensOf(
  config: Readonly<Record<string, unknown>>,
  map: Readonly<Record<string, unknown>>,
  tokenizer: Tokenizer,
): Record<string, string> {
  const { before, after } = tokenizer.around;
  const written = (ids: readonly number[]) =>
    ids.length === 1 && ids[0] !== undefined ? tokenizer.token(ids[0])?.content : undefined;
  const files = { bos_token: written(before), eos_token: written(after), ...map, ...config };
  const named: Readonly<Record<string, unknown>> = files;
  return Object.fromEntries(
    NAMED_TOKENS.flatMap((name) => {
      const text = contentOf(named[name]);
      return text === null ? [] : [[name, text]];
    }),
  );
}

/** Returns the text of a special token, which is a text or an object with its text. */
function contentOf(token: unknown): string | null {
  if (typeof token === 'string') return token;
  const content = (token as { content?: unknown } | null | undefined)?.content;
  return typeof content === 'string' ? content : null;
}

interface Named {
  name?: unknown;
  template?: unknown;
}

function invalid(reason: string): ZerofleetError {
  return new ZerofleetError('tokenizer_invalid', `tokenizer.json can't be used: ${reason}`);
}

function shown(value: unknown): string {
  return String(JSON.stringify(value)).slice(0, 100);
}
