import type { DecoderTable, TextKind } from '../tokenizer/token-decoder.js';
import type { RenderedText } from './chat-template.js';

/** Decodes the tokens of answers. */
export interface AnswerDecoder {
  /** Decodes tokens that follow others; special tokens have no text. */
  decodeAfter(prompt: readonly number[], tokens: readonly number[]): string;
  textKind(token: number): TextKind;
  /** Returns the bytes of a token that follows others, parts of characters included. */
  bytesAfter(prompt: readonly number[], token: number): Uint8Array;
}

/** Tokenizer interface for samples. */
export interface PromptTokenizer extends AnswerDecoder {
  /** Exclusive upper bound of the token ids. */
  readonly vocabSize: number;
  /** Token that ends a document; null if there is none. */
  readonly end: number | null;
  /** Encodes the beginning of a document, with the tokenizer's special tokens before it. */
  encodePrompt(text: string): number[];
  /** Special tokens by name, for chat templates. */
  readonly variables: Readonly<Record<string, string>>;
  /** Matches the special tokens that are plain text in user messages; null if there are none. */
  readonly specialTexts: RegExp | null;
  /** Encodes a rendered chat without adding special tokens. */
  encodeChat(text: RenderedText): number[];
  /** Table that decodes its tokens; null: each token is a byte. */
  readonly decoderTable: DecoderTable | null;
}
