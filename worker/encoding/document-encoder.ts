import type { JsonlDocument } from '../../contracts/jsonl.js';
import type { ChatTemplate, RenderedText, Span } from './chat-template.js';
import type { TextPiece } from './text-pieces.js';
import type { Tokens } from './tokens.js';

export interface EncodedDocument {
  tokens: Tokens;
  /** 1 for each token that counts as a target; null: all of them. */
  counts: Uint8Array | null;
}

/** Converts text to tokens. */
export interface TextTokenizer {
  /** Encodes a whole document, with the tokenizer's special tokens around it. */
  encodeDocument(text: string): Tokens;
  /** Encodes a part of a long document: the concatenated tokens of all parts equal those of the document. */
  encodePiece(text: string, place: Omit<TextPiece, 'bytes'>): Tokens;
  /** Encodes a rendered chat without adding special tokens; `counts` is 1 for tokens that overlap a span. */
  encodeSpans(text: RenderedText, spans: readonly Span[]): { tokens: Tokens; counts: Uint8Array };
}

/** Converts documents to tokens; a chat needs a template. */
export class DocumentEncoder {
  constructor(
    private readonly tokenizer: TextTokenizer,
    private readonly template: ChatTemplate | null,
  ) {}

  /** @throws ZerofleetError `chat_template_invalid` */
  encode(document: JsonlDocument): EncodedDocument {
    if ('text' in document) return { tokens: this.tokenizer.encodeDocument(document.text), counts: null };
    if (!this.template) throw new Error('an encoder without a template received a chat');
    const { learned, ...text } = this.template.render(document);
    return this.tokenizer.encodeSpans(text, learned);
  }
}
