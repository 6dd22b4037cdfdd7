import { SPECIAL_TOKENS_FILE, TOKENIZER_CONFIG_FILE, TOKENIZER_FILE } from '../models/documents.js';
import { jsonObject } from '../models/read-document.js';
import { specialTokensOf, vocabSizeOf } from '../models/tokenizer.js';
import type { DecoderTable, TextKind } from '../tokenizer/token-decoder.js';
import { type SpecialTokens, Tokenizer } from '../tokenizer/tokenizer.js';
import type { RenderedText, Span } from './chat-template.js';
import type { TextTokenizer } from './document-encoder.js';
import type { PromptTokenizer } from './prompt-tokenizer.js';
import type { TextPiece } from './text-pieces.js';
import { TokenSpellings } from './token-spans.js';

/** Files of a Hugging Face model, as text. */
export interface TokenizerFiles {
  /** tokenizer.json */
  tokenizer: string;
  /** tokenizer_config.json; null: empty. */
  config: string | null;
  /** special_tokens_map.json; null: empty. */
  special_tokens_map: string | null;
}

/** Tokenizer from a tokenizer.json. */
export class HfTokenizer implements TextTokenizer, PromptTokenizer {
  /** Special tokens of the configuration by name, for chat templates. */
  readonly variables: Readonly<Record<string, string>>;
  readonly vocabSize: number;
  /** The end-of-sequence token. */
  readonly end: number | null;
  readonly beginText: string | null;
  /** Matches the special tokens in user text that are encoded as plain text; null if all are parsed. */
  readonly specialTexts: RegExp | null;
  private readonly tokenizer: Tokenizer;
  private readonly special: SpecialTokens;
  private readonly spellings: TokenSpellings;

  /**
   * Creates a tokenizer.
   * @param parseSpecial true if special tokens are parsed in user text
   * @throws ZerofleetError `tokenizer_invalid`
   */
  constructor(files: TokenizerFiles, parseSpecial: boolean) {
    const config = read(TOKENIZER_CONFIG_FILE, files.config ?? '{}');
    const map = read(SPECIAL_TOKENS_FILE, files.special_tokens_map ?? '{}');
    const tokenizer = read(TOKENIZER_FILE, files.tokenizer);
    this.vocabSize = vocabSizeOf(tokenizer);
    this.tokenizer = new Tokenizer(tokenizer);
    const surface = files.tokenizer.includes('"ByteLevel"') ? 'byte-level' : 'spaces-marked';
    this.spellings = new TokenSpellings(this.vocabSize, surface, (id) => {
      const { content, added } = this.tokenizer.token(id) ?? { content: '', added: false };
      return { content, special: added };
    });
    this.special = parseSpecial ? 'parsed' : 'text';
    this.specialTexts = parseSpecial ? null : this.tokenizer.specialTexts();
    this.variables = specialTokensOf(config, map, this.tokenizer);
    const { eos_token } = this.variables;
    this.end = eos_token === undefined ? null : this.tokenizer.id(eos_token);
    const [first] = this.tokenizer.around.before;
    this.beginText = first === undefined ? null : (this.tokenizer.token(first)?.content ?? null);
  }

  /** Encodes a text with the tokenizer's special tokens around it, and its end-of-sequence token if there is one. */
  encodeDocument(text: string): Uint32Array {
    return this.document(this.encode(text, this.special), { first: true, last: true });
  }

  encodePiece(text: string, { after_line, ...position }: Omit<TextPiece, 'bytes'>): Uint32Array {
    return this.document(after_line ? this.encodeAfterLine(text) : this.encode(text, this.special), position);
  }

  encodePrompt(text: string): number[] {
    return [...this.tokenizer.around.before, ...this.encode(text, this.special)];
  }

  encodeChat({ text, literal }: RenderedText): number[] {
    return this.encode(text, literal);
  }

  get decoderTable(): DecoderTable {
    return this.tokenizer.decoderTable;
  }

  decodeAfter(prompt: readonly number[], tokens: readonly number[]): string {
    return this.tokenizer.decoder.decodeAfter(prompt, tokens);
  }

  bytesAfter(prompt: readonly number[], token: number): Uint8Array {
    return this.tokenizer.decoder.bytesAfter(prompt, token);
  }

  textKind(token: number): TextKind {
    return this.tokenizer.decoder.textKind(token);
  }

  /** Encodes a rendered chat. The library returns no offsets, so they are derived from the tokens' content. */
  encodeSpans(rendered: RenderedText, spans: readonly Span[]) {
    const ids = this.encodeChat(rendered);
    const counts =
      this.spellings.tokensOfSpans(rendered.text, ids, spans) ?? this.countsByPrefix(rendered, ids, spans);
    return { tokens: Uint32Array.from(ids), counts };
  }

  encodeCompletion(document: string | RenderedText, begin: number) {
    const isPlain = typeof document === 'string';
    const { text, special } = isPlain
      ? { text: document, special: this.special }
      : { text: document.text, special: document.literal };
    const ids = this.encode(text, special);
    const prompt = commonLength(ids, this.encode(text.slice(0, begin), special));
    const tokens = isPlain ? this.document(ids, { first: true, last: true }) : Uint32Array.from(ids);
    const before = isPlain ? this.tokenizer.around.before.length : 0;
    return { tokens, counts: new Uint8Array(tokens.length).fill(1, before + prompt) };
  }

  /**
   * Counts tokens by prefixes, for a text that a normalizer changes. The tokens of the text up to the border of a span
   * equal those of the whole text, up to the first difference.
   */
  private countsByPrefix(
    { text, literal }: RenderedText,
    ids: readonly number[],
    spans: readonly Span[],
  ): Uint8Array {
    const counts = new Uint8Array(ids.length);
    for (const { begin, end } of spans) {
      const before = this.encode(text.slice(0, begin), literal);
      const until = this.encode(text.slice(0, end), literal);
      const first = commonLength(ids, before);
      const shared = commonLength(ids, until);
      // A token that crosses the end of the span counts.
      const last = shared < until.length ? shared + 1 : shared;
      counts.fill(1, first, last);
    }
    return counts;
  }

  /** Encodes a text after a line end, because alone it may get a leading space. */
  private encodeAfterLine(text: string): number[] {
    const line = this.encode('\n', this.special);
    const ids = this.encode(`\n${text}`, this.special);
    return commonLength(ids, line) === line.length ? ids.slice(line.length) : this.encode(text, this.special);
  }

  private document(ids: readonly number[], { first, last }: Pick<TextPiece, 'first' | 'last'>): Uint32Array {
    const { before, after } = this.tokenizer.around;
    const head = first ? before : [];
    const tail = last ? [...after] : [];
    if (last && this.end !== null && (tail.at(-1) ?? ids.at(-1) ?? head.at(-1)) !== this.end)
      tail.push(this.end);
    const whole = new Uint32Array(head.length + ids.length + tail.length);
    whole.set(head);
    whole.set(ids, head.length);
    whole.set(tail, head.length + ids.length);
    return whole;
  }

  private encode(text: string, special: SpecialTokens): number[] {
    return this.tokenizer.encode(text, special);
  }
}

function commonLength(a: readonly number[], b: readonly number[]): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

function read(name: string, text: string): Record<string, unknown> {
  return jsonObject(name, text, 'tokenizer_invalid');
}
