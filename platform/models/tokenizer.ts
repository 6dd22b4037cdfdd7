/** What the files of a Hugging Face tokenizer say about it, read from the files alone. */
import { ZerofleetError } from '../../contracts/index.js';
import type { Tokenizer } from '../tokenizer/tokenizer.js';

/** Largest vocabularies have some hundred thousand tokens; readers have tables that are as long as the largest id. */
const MAX_VOCAB_SIZE = 1 << 24;

/** Old files do not say which one theirs is. */
const MODEL_TYPES: readonly unknown[] = ['BPE', 'WordPiece', 'Unigram', undefined];

/**
 * One more than the largest id of a `tokenizer.json`, added tokens included; it need not be the number of tokens.
 * @throws ZerofleetError `tokenizer_invalid`
 */
export function vocabSizeOf({ model, added_tokens = [] }: Readonly<Record<string, unknown>>): number {
  if (typeof model !== 'object' || model === null) throw invalid('it has no model');
  const { type, vocab } = model as Record<string, unknown>;
  if (!MODEL_TYPES.includes(type))
    throw invalid(`its model is of the type ${shown(type)}; BPE, WordPiece and Unigram are read`);
  let size = 0;
  const add = (id: unknown, token: unknown) => {
    if (typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id >= MAX_VOCAB_SIZE)
      throw invalid(
        `its token ${shown(token)} has the id ${shown(id)}, which is no number from 0 to ${MAX_VOCAB_SIZE - 1}`,
      );
    size = Math.max(size, id + 1);
  };
  // Of a Unigram model: a list of tokens with their scores, and the id is the place in it.
  if (Array.isArray(vocab)) size = vocab.length;
  else if (typeof vocab === 'object' && vocab !== null)
    for (const [token, id] of Object.entries(vocab)) add(id, token);
  else throw invalid('its model has no vocab');
  if (!Array.isArray(added_tokens)) throw invalid('its added_tokens are no list');
  for (const token of added_tokens as unknown[]) {
    const { id, content } = (token ?? {}) as Record<string, unknown>;
    add(id, content);
  }
  if (size === 0) throw invalid('it has no tokens');
  return size;
}

/**
 * The chat template of a model, null when it has none.
 * @param config `tokenizer_config.json`, where the template is a text or one of several with names
 * @param file `chat_template.jinja`, which takes its place
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
 * Special tokens by name. What `tokenizer_config.json` says of one counts, null included; else what `special_tokens_map.json` says.
 * Where neither names the tokens that begin and end a text, they are the single ones that the post-processor puts around it.
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

/** A special token is its text, or an object with its text. */
function contentOf(token: unknown): string | null {
  if (typeof token === 'string') return token;
  const content = (token as { content?: unknown } | null | undefined)?.content;
  return typeof content === 'string' ? content : null;
}

interface Named {
  name?: unknown;
  template?: unknown;
}

function invalid(what: string): ZerofleetError {
  return new ZerofleetError('tokenizer_invalid', `tokenizer.json can't be used: ${what}`);
}

function shown(value: unknown): string {
  return String(JSON.stringify(value)).slice(0, 100);
}
