import type { JsonlDocument } from '../../contracts/jsonl.js';
import type { ChatTemplate, Span } from './chat-template.js';
import type { Tokens } from './token-file-writer.js';

export interface EncodedDocument {
  tokens: Tokens;
  /** Whether each token counts as a target; null: all of them. */
  counts: Uint8Array | null;
}

/** Turns text into tokens. */
export interface TextTokenizer {
  /** A whole document, with what the tokenizer puts around one. */
  encodeDocument(text: string): Tokens;
  /** A rendered chat, which has everything in it; `counts` is 1 for the tokens that touch a span. */
  encodeSpans(text: string, spans: readonly Span[]): { tokens: Tokens; counts: Uint8Array };
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
    const { text, learned } = this.template.render(document.messages);
    return this.tokenizer.encodeSpans(text, learned);
  }
}

/** The tokenizer `bytes`: a token is a byte of the UTF-8 text. */
export class BytesTokenizer implements TextTokenizer {
  encodeDocument(text: string): Tokens {
    return new Uint16Array(new TextEncoder().encode(text));
  }

  encodeSpans(text: string, spans: readonly Span[]) {
    const parts: Uint8Array[] = [];
    const counts: Uint8Array[] = [];
    const encoder = new TextEncoder();
    let place = 0;
    const add = (end: number, count: number) => {
      const part = encoder.encode(text.slice(place, end));
      parts.push(part);
      counts.push(new Uint8Array(part.length).fill(count));
      place = end;
    };
    for (const { begin, end } of spans) {
      add(begin, 0);
      add(end, 1);
    }
    add(text.length, 0);
    return { tokens: new Uint16Array(Buffer.concat(parts)), counts: new Uint8Array(Buffer.concat(counts)) };
  }
}
