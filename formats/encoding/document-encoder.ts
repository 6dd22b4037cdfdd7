import type { JsonlContent, JsonlContinued, JsonlLabelled } from '../../contracts/jsonl/completions.js';
import { BadLine } from '../../contracts/jsonl/fields.js';
import type { JsonlDocument } from '../../contracts/jsonl/line.js';
import type { JsonlPair } from '../../contracts/jsonl/preferences.js';
import type { TextFlaw, Unit } from '../../job-document/index.js';
import type { ChatTemplate, MissingPart, RenderedText, Span } from './chat-template.js';
import type { TextPiece } from './text-pieces.js';
import { countTargets, type TokenPiece, type Tokens } from './tokens.js';

const PROMPT_ALONE =
  'it is a prompt without a completion, and only the objective grpo samples one; add the completion, or leave the line out';

export type EncodedDocument = Pick<TokenPiece, 'tokens' | 'counts' | 'flaws'>;

/** Converts text to tokens. */
export interface TextTokenizer {
  /** The text of the token that is put before each text; null if there is none. */
  readonly beginText: string | null;
  /** Encodes a whole document, with the tokenizer's special tokens around it. */
  encodeDocument(text: string): Tokens;
  /** Encodes a part of a long document: the concatenated tokens of all parts equal those of the document. */
  encodePiece(text: string, position: Omit<TextPiece, 'bytes'>): Tokens;
  /** Encodes a rendered chat without adding special tokens; `counts` is 1 for tokens that overlap a span. */
  encodeSpans(text: RenderedText, spans: readonly Span[]): CountedTokens;
  /**
   * Encodes a prompt and its completion, which begins at `begin` (UTF-16 units): a text like a document, a rendered
   * chat without adding special tokens. `counts` is 1 from the first token that the prompt alone does not have at its
   * position. So a token that crosses the border belongs to the completion.
   */
  encodeCompletion(document: string | RenderedText, begin: number): CountedTokens;
}

interface CountedTokens {
  tokens: Tokens;
  counts: Uint8Array;
}

/** A text that is encoded as one document, and the parts of it that are learned. */
export type ReadableText =
  | { kind: 'document'; text: string }
  | { kind: 'chat'; text: RenderedText; learned: Span[]; missing: MissingPart[] }
  /**
   * A prompt with its completion, which begins at `begin` (UTF-16 units). `label` is the count of its first token;
   * null: the completion is no preference.
   */
  | {
      kind: 'completion';
      text: string | RenderedText;
      begin: number;
      label: boolean | null;
      missing: MissingPart[];
    };

/** Converts documents to tokens; messages need a template. */
export class DocumentEncoder {
  /** @param stops tokens that end answers; null: chats are not searched for them */
  constructor(
    private readonly tokenizer: TextTokenizer,
    private readonly template: ChatTemplate | null,
    private readonly unit: Unit | null = null,
    private readonly stops: readonly number[] | null = null,
  ) {}

  /**
   * Returns the document, or the completions of preferences, each with its prompt. The first token of these never is a
   * target; its count is the label where preferences have one, otherwise 0.
   * @throws ZerofleetError `chat_template_invalid`
   */
  encode(document: JsonlDocument): EncodedDocument[] {
    return this.read(document).map((text) => this.encodeText(text));
  }

  /** Returns the texts of a document, as they are encoded. @throws ZerofleetError `chat_template_invalid` */
  read(document: JsonlDocument): ReadableText[] {
    if (!isReadable(document, this.unit)) throw new Error('an encoder received a document of another kind');
    if ('text' in document) return [{ kind: 'document', text: document.text }];
    if ('completion' in document) {
      const label = 'label' in document ? document.label : null;
      return [this.readCompletion(document, document.completion, label)];
    }
    if ('chosen' in document)
      return [
        this.readCompletion(document, document.chosen, this.unit === 'labelled'),
        this.readCompletion(document, document.rejected, false),
      ];
    if ('prompt' in document) throw new BadLine(PROMPT_ALONE);
    return this.templateOfChats()
      .renderAll(document)
      .map(({ learned, missing, ...text }) => ({ kind: 'chat', text, learned, missing }));
  }

  encodeText(read: ReadableText): EncodedDocument {
    switch (read.kind) {
      case 'document':
        return {
          tokens: this.tokenizer.encodeDocument(read.text),
          counts: null,
          flaws: this.beginFlaws(read.text),
        };
      case 'chat': {
        const encoded = this.tokenizer.encodeSpans(read.text, read.learned);
        return { ...encoded, flaws: this.answerFlaws(read, encoded) };
      }
      case 'completion': {
        const encoded = this.tokenizer.encodeCompletion(read.text, read.begin);
        if (read.label !== null && encoded.counts.length > 0) encoded.counts[0] = Number(read.label);
        return { ...encoded, flaws: this.answerFlaws(read, encoded) };
      }
    }
  }

  /** Encodes a part of a text that is one document. */
  encodePiece(text: string, position: Omit<TextPiece, 'bytes'>): EncodedDocument {
    const tokens = this.tokenizer.encodePiece(text, position);
    return { tokens, counts: null, ...(position.first && { flaws: this.beginFlaws(text) }) };
  }

  private answerFlaws(
    { text, missing }: { text: string | RenderedText; missing: readonly MissingPart[] },
    { tokens, counts }: CountedTokens,
  ): TextFlaw[] {
    const isEnd = (token: number, index: number) =>
      counts[index] === 1 && this.stops?.includes(token) === true;
    const learns = countTargets(counts, 0, tokens.length, true) > 0;
    return [
      ...(!learns ? (['nothing_learned'] as const) : []),
      ...(learns && this.stops !== null && !tokens.some(isEnd) ? (['no_stop_token'] as const) : []),
      ...this.beginFlaws(text),
      ...missing.map((part) => `${part}_not_rendered` as const),
    ];
  }

  /** A rendered chat has no tokens around it, so only its text can have the first token twice. */
  private beginFlaws(text: string | RenderedText): TextFlaw[] {
    const { beginText } = this.tokenizer;
    if (beginText === null) return [];
    const repeated = typeof text === 'string' ? beginText : beginText + beginText;
    return (typeof text === 'string' ? text : text.text).startsWith(repeated) ? ['repeated_begin'] : [];
  }

  private readCompletion(
    { prompt, ...others }: JsonlPair | JsonlLabelled | JsonlContinued,
    completion: JsonlContent,
    label: boolean | null,
  ): ReadableText {
    if (typeof prompt === 'string' && typeof completion === 'string')
      return { kind: 'completion', text: prompt + completion, begin: prompt.length, label, missing: [] };
    if (typeof prompt === 'string' || typeof completion === 'string')
      throw new Error('a prompt and its completion are of different kinds');
    const chat = { ...others, messages: prompt };
    const { begin, missing, ...text } = this.templateOfChats().renderCompletion(chat, completion);
    return { kind: 'completion', text, begin, label, missing };
  }

  private templateOfChats(): ChatTemplate {
    if (!this.template) throw new Error('an encoder without a template received a chat');
    return this.template;
  }
}

function isReadable(document: JsonlDocument, unit: Unit | null): boolean {
  if ('chosen' in document) return unit !== null;
  return unit === ('label' in document ? 'labelled' : null);
}
