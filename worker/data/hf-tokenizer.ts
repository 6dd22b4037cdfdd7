import { Tokenizer } from '@huggingface/tokenizers';
import { ZerofleetError } from '../../contracts/index.js';
import type { Span } from './chat-template.js';
import type { TextTokenizer } from './document-encoder.js';
import { type Surface, tokensOfSpans } from './token-spans.js';

/** Files of a Hugging Face model, as text. */
export interface TokenizerFiles {
  /** tokenizer.json */
  tokenizer: string;
  /** tokenizer_config.json; absent: an empty one. */
  config?: string;
  /** chat_template.jinja; absent: the `chat_template` of the configuration. */
  chat_template?: string;
}

/** Special tokens that templates use by name. */
const NAMED_TOKENS = ['bos_token', 'eos_token', 'pad_token', 'unk_token'] as const;

/** A tokenizer from its tokenizer.json. */
export class HfTokenizer implements TextTokenizer {
  /** The special tokens of the configuration, by name, for chat templates. */
  readonly variables: Readonly<Record<string, string>>;
  /** The template that comes with the model; null when there is none. */
  readonly chat_template: string | null;
  /** Ids are below it. */
  readonly vocab_size: number;
  private readonly tokenizer: Tokenizer;
  private readonly end: number | null;
  private readonly surface: Surface;

  /** @throws ZerofleetError `tokenizer_invalid` */
  constructor(files: TokenizerFiles) {
    const config = parseObject(files.config ?? '{}', 'tokenizer_config.json');
    try {
      this.tokenizer = new Tokenizer(parseObject(files.tokenizer, 'tokenizer.json'), config);
    } catch (error) {
      throw error instanceof ZerofleetError ? error : invalid(`tokenizer.json: ${(error as Error).message}`);
    }
    this.surface = files.tokenizer.includes('"ByteLevel"') ? 'byte-level' : 'spaces-marked';
    this.vocab_size = vocabSize(this.tokenizer);
    this.variables = Object.fromEntries(
      NAMED_TOKENS.flatMap((name) => {
        const text = contentOf(config[name]);
        return text === null ? [] : [[name, text]];
      }),
    );
    const { chat_template } = config;
    this.chat_template = files.chat_template ?? (typeof chat_template === 'string' ? chat_template : null);
    const { eos_token } = this.variables;
    this.end = eos_token === undefined ? null : (this.tokenizer.token_to_id(eos_token) ?? null);
  }

  /** With what the tokenizer puts around a text, and its end-of-sequence token where there is one. */
  encodeDocument(text: string): Uint32Array {
    const ids = this.encode(text, true);
    if (this.end !== null && ids.at(-1) !== this.end) ids.push(this.end);
    return Uint32Array.from(ids);
  }

  /** The library tells no places of tokens in the text; they follow from what the tokens spell. */
  encodeSpans(text: string, spans: readonly Span[]) {
    const ids = this.encode(text, false);
    const added = this.tokenizer.get_added_tokens_decoder();
    const pieces = ids.map((id) => {
      const special = added.get(id)?.content;
      return { content: special ?? this.tokenizer.id_to_token(id) ?? '', special: special !== undefined };
    });
    const counts = tokensOfSpans(text, pieces, spans, this.surface) ?? this.countsByPrefix(text, ids, spans);
    return { tokens: Uint32Array.from(ids), counts };
  }

  /**
   * For a text that a normalizer changes: the tokens of the text up to the border of a span are those of the whole text, up
   * to the first that differs.
   */
  private countsByPrefix(text: string, ids: readonly number[], spans: readonly Span[]): Uint8Array {
    const counts = new Uint8Array(ids.length);
    for (const { begin, end } of spans) {
      const before = this.encode(text.slice(0, begin), false);
      const until = this.encode(text.slice(0, end), false);
      const first = commonLength(ids, before);
      const shared = commonLength(ids, until);
      // A token across the end of the span has a part of it.
      const last = shared < until.length ? shared + 1 : shared;
      counts.fill(1, first, last);
    }
    return counts;
  }

  private encode(text: string, add_special_tokens: boolean): number[] {
    return this.tokenizer.encode(text, { add_special_tokens }).ids;
  }
}

/** One more than the largest id, which need not be the number of tokens. */
function vocabSize(tokenizer: Tokenizer): number {
  let size = 0;
  for (const id of tokenizer.get_vocab().values()) size = Math.max(size, id + 1);
  return size;
}

function commonLength(a: readonly number[], b: readonly number[]): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

/** A special token is its text, or an object with its text. */
function contentOf(token: unknown): string | null {
  if (typeof token === 'string') return token;
  const content = (token as { content?: unknown } | null | undefined)?.content;
  return typeof content === 'string' ? content : null;
}

function parseObject(text: string, name: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw invalid(`${name} is not JSON: ${(error as Error).message}`);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw invalid(`${name} is no JSON object`);
}

function invalid(what: string): ZerofleetError {
  return new ZerofleetError('tokenizer_invalid', `the tokenizer cannot be used: ${what}`);
}
