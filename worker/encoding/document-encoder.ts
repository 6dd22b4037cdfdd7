import type { JsonlDocument } from '../../contracts/jsonl.js';
import type { ChatTemplate, RenderedText, Span } from './chat-template.js';
import type { TextPiece } from './text-pieces.js';
import type { Tokens } from './tokens.js';

export interface EncodedDocument {
  tokens: Tokens;
  /** Whether each token counts as a target; null: all of them. */
  counts: Uint8Array | null;
}

/** Turns text into tokens. */
export interface TextTokenizer {
  /** A whole document, with what the tokenizer puts around one. */
  encodeDocument(text: string): Tokens;
  /** A part of a long document: the tokens of all parts, one after the other, are those of the document. */
  encodePiece(text: string, place: Omit<TextPiece, 'bytes'>): Tokens;
  /** A rendered chat, which has everything in it; `counts` is 1 for the tokens that touch a span. */
  encodeSpans(text: RenderedText, spans: readonly Span[]): { tokens: Tokens; counts: Uint8Array };
}

/** Turns documents into tokens; a chat needs a template. */
export class DocumentEncoder {
  constructor(
    private readonly tokenizer: TextTokenizer,
    private readonly template: ChatTemplate | null,
  ) {}

  /** @throws ZerofleetError `chat_template_invalid` */
  encode(document: JsonlDocument): EncodedDocument {
    if ('text' in document) return { tokens: this.tokenizer.encodeDocument(document.text), counts: null };
    if (!this.template) throw new Error('a chat came to an encoder without a template');
    const { learned, ...text } = this.template.render(document);
    return this.tokenizer.encodeSpans(text, learned);
  }
}
