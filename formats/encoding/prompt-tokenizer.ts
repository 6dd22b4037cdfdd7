import type { TextKind } from '../tokenizer/tokenizer.js';
import type { RenderedText } from './chat-template.js';

/** Tokenizer interface for samples. */
export interface PromptTokenizer {
  /** Exclusive upper bound of the token ids. */
  readonly vocab_size: number;
  /** Token that ends a document; null if there is none. */
  readonly end: number | null;
  /** Encodes the beginning of a document, with the tokenizer's special tokens before it. */
  encodePrompt(text: string): number[];
  /** Special tokens by name, for chat templates. */
  readonly variables: Readonly<Record<string, string>>;
  /** Matches the special tokens that are plain text in user messages; null if there are none. */
  readonly special_texts: RegExp | null;
  /** Encodes a rendered chat without adding special tokens. */
  encodeChat(text: RenderedText): number[];
  /** Decodes tokens that follow the prompt's; special tokens have no text. */
  decodeAfter(prompt: readonly number[], tokens: readonly number[]): string;
  textKind(token: number): TextKind;
}
