import { Tokenizer } from '@huggingface/tokenizers';
import { ZerofleetError } from '../../contracts/index.js';
import { TOKENIZER_CONFIG_FILE, TOKENIZER_FILE } from '../../platform/models/documents.js';
import { jsonObject } from '../../platform/models/read-document.js';
import { vocabSizeOf } from '../../platform/models/tokenizer.js';
import type { Span } from './chat-template.js';
import type { TextTokenizer } from './document-encoder.js';
import type { PromptTokenizer } from './prompt-tokenizer.js';
import type { TextPiece } from './text-pieces.js';
import { type Piece, pieceOf, type Surface, tokensOfSpans } from './token-spans.js';

/** Files of a Hugging Face model, as text. */
export interface TokenizerFiles {
  /** tokenizer.json */
  tokenizer: string;
  /** tokenizer_config.json; null: an empty one. */
  config: string | null;
}

/** Special tokens that templates use by name. */
const NAMED_TOKENS = ['bos_token', 'eos_token', 'pad_token', 'unk_token'] as const;

/** A tokenizer from its tokenizer.json. */
export class HfTokenizer implements TextTokenizer, PromptTokenizer {
  /** The special tokens of the configuration, by name, for chat templates. */
  readonly variables: Readonly<Record<string, string>>;
  readonly vocab_size: number;
  /** The end-of-sequence token. */
  readonly end: number | null;
  private readonly tokenizer: Tokenizer;
  private readonly surface: Surface;
  /** Of each token that was seen. */
  private readonly pieces = new Map<number, Piece>();

  /** @throws ZerofleetError `tokenizer_invalid` */
  constructor(files: TokenizerFiles) {
    const config = jsonObject(TOKENIZER_CONFIG_FILE, files.config ?? '{}', 'tokenizer_invalid');
    const tokenizer = jsonObject(TOKENIZER_FILE, files.tokenizer, 'tokenizer_invalid');
    this.vocab_size = vocabSizeOf(tokenizer);
    try {
      this.tokenizer = new Tokenizer(tokenizer, config);
    } catch (error) {
      throw invalid(`tokenizer.json: ${(error as Error).message}`);
    }
    this.surface = files.tokenizer.includes('"ByteLevel"') ? 'byte-level' : 'spaces-marked';
    this.variables = Object.fromEntries(
      NAMED_TOKENS.flatMap((name) => {
        const text = contentOf(config[name]);
        return text === null ? [] : [[name, text]];
      }),
    );
    const { eos_token } = this.variables;
    this.end = eos_token === undefined ? null : (this.tokenizer.token_to_id(eos_token) ?? null);
  }

  /** With what the tokenizer puts around a text, and its end-of-sequence token where there is one. */
  encodeDocument(text: string): Uint32Array {
    const ids = this.encode(text, true);
    if (this.end !== null && ids.at(-1) !== this.end) ids.push(this.end);
    return Uint32Array.from(ids);
  }

  encodePiece(text: string, { first, last, after_line }: Omit<TextPiece, 'bytes'>): Uint32Array {
    const ids = after_line ? this.encodeAfterLine(text) : this.encode(text, false);
    if (first || last) {
      const { before, after } = this.around(text);
      if (first) ids.unshift(...before);
      if (last) ids.push(...after);
    }
    if (last && this.end !== null && ids.at(-1) !== this.end) ids.push(this.end);
    return Uint32Array.from(ids);
  }

  encodePrompt(text: string): number[] {
    return [...this.around(text).before, ...this.encode(text, false)];
  }

  encodeChat(text: string): number[] {
    return this.encode(text, false);
  }

  /** Alone, the tokens may lose a space before their first word. */
  decodeAfter(prompt: readonly number[], tokens: readonly number[]): string {
    const before = this.decode(prompt);
    const text = this.decode([...prompt, ...tokens]);
    return text.startsWith(before) ? text.slice(before.length) : this.decode(tokens);
  }

  /** The library tells no places of tokens in the text; they follow from what the tokens spell. */
  encodeSpans(text: string, spans: readonly Span[]) {
    const ids = this.encode(text, false);
    const pieces = ids.map((id) => this.piece(id));
    const counts = tokensOfSpans(text, pieces, spans) ?? this.countsByPrefix(text, ids, spans);
    return { tokens: Uint32Array.from(ids), counts };
  }

  private piece(id: number): Piece {
    const known = this.pieces.get(id);
    if (known) return known;
    const special = this.tokenizer.get_added_tokens_decoder().get(id)?.content;
    const content = special ?? this.tokenizer.id_to_token(id) ?? '';
    const piece = pieceOf(content, special !== undefined, this.surface);
    this.pieces.set(id, piece);
    return piece;
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

  /** A text alone may get a space before it that is not there behind the end of a line. */
  private encodeAfterLine(text: string): number[] {
    const line = this.encode('\n', false);
    const ids = this.encode(`\n${text}`, false);
    return commonLength(ids, line) === line.length ? ids.slice(line.length) : this.encode(text, false);
  }

  /** What the tokenizer puts around a text. */
  private around(text: string): { before: number[]; after: number[] } {
    const plain = this.encode(text, false);
    const whole = this.encode(text, true);
    const places = Array.from({ length: whole.length - plain.length + 1 }, (_, at) => at);
    const begin = places.find((at) => plain.every((id, index) => whole[at + index] === id));
    if (begin === undefined) throw invalid('tokenizer.json: its post-processor changes the tokens of a text');
    return { before: whole.slice(0, begin), after: whole.slice(begin + plain.length) };
  }

  private decode(ids: readonly number[]): string {
    if (ids.length === 0) return '';
    return this.tokenizer.decode([...ids], {
      skip_special_tokens: true,
      clean_up_tokenization_spaces: false,
    });
  }

  private encode(text: string, add_special_tokens: boolean): number[] {
    return this.tokenizer.encode(text, { add_special_tokens }).ids;
  }
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

function invalid(what: string): ZerofleetError {
  return new ZerofleetError('tokenizer_invalid', `the tokenizer cannot be used: ${what}`);
}
