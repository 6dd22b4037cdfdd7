import type { TextKind } from '../tokenizer/token-decoder.js';
import type { RenderedText, Span } from './chat-template.js';
import type { TextTokenizer } from './document-encoder.js';
import type { PromptTokenizer } from './prompt-tokenizer.js';
import type { Tokens } from './tokens.js';

/** Tokenizer `bytes`: each byte of the UTF-8 text is a token. */
export class BytesTokenizer implements TextTokenizer, PromptTokenizer {
  readonly vocabSize = 256;
  readonly end = null;
  readonly beginText = null;
  readonly variables = {};
  readonly specialTexts = null;
  readonly decoderTable = null;

  encodeDocument(text: string): Tokens {
    return new Uint16Array(new TextEncoder().encode(text));
  }

  encodePiece(text: string): Tokens {
    return this.encodeDocument(text);
  }

  encodeSpans({ text }: RenderedText, spans: readonly Span[]) {
    const parts: Uint8Array[] = [];
    const counts: Uint8Array[] = [];
    const encoder = new TextEncoder();
    let position = 0;
    const add = (end: number, count: number) => {
      const part = encoder.encode(text.slice(position, end));
      parts.push(part);
      counts.push(new Uint8Array(part.length).fill(count));
      position = end;
    };
    for (const { begin, end } of spans) {
      add(begin, 0);
      add(end, 1);
    }
    add(text.length, 0);
    return { tokens: new Uint16Array(Buffer.concat(parts)), counts: new Uint8Array(Buffer.concat(counts)) };
  }

  encodeCompletion(document: string | RenderedText, begin: number) {
    const text = typeof document === 'string' ? document : document.text;
    return this.encodeSpans({ text, literal: [] }, [{ begin, end: text.length }]);
  }

  encodePrompt(text: string): number[] {
    return [...Buffer.from(text)];
  }

  encodeChat({ text }: RenderedText): number[] {
    return this.encodePrompt(text);
  }

  /** Unlike byte tokens of other tokenizers, incomplete characters change no text beside them. */
  textKind(token: number): TextKind {
    return token < this.vocabSize ? 'text' : 'none';
  }

  decodeAfter(_prompt: readonly number[], tokens: readonly number[]): string {
    return Buffer.from(tokens).toString('utf8');
  }

  bytesAfter(_prompt: readonly number[], token: number): Uint8Array {
    return Uint8Array.of(token);
  }
}
