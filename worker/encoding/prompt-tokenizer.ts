import type { RenderedText } from './chat-template.js';

/** What a tokenizer does for samples: text in, text out. */
export interface PromptTokenizer {
  /** Ids are below it. */
  readonly vocab_size: number;
  /** The token that ends a document; null where there is none. */
  readonly end: number | null;
  /** The beginning of a document, with what the tokenizer puts before one. */
  encodePrompt(text: string): number[];
  /** Special tokens by name, for chat templates. */
  readonly variables: Readonly<Record<string, string>>;
  /** Finds the special tokens that are texts where users write them; null where there are none. */
  readonly special_texts: RegExp | null;
  /** A rendered chat: nothing is put around it. */
  encodeChat(text: RenderedText): number[];
  /** The text of tokens that follow the prompt's; special tokens have none. */
  decodeAfter(prompt: readonly number[], tokens: readonly number[]): string;
}
