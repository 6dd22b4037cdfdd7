import type { PromptTokenizer } from '../../platform/encoding/prompt-tokenizer.js';

/** Tokens of the prompt that the first words are decoded with. */
const CONTEXT = 8;
/** A character has at most this many bytes, hence tokens. */
const LONGEST_CHARACTER = 4;
const REPLACEMENT = '\uFFFD';

/** Decodes a text token by token; a character appears when all of its tokens are there. */
export class Detokenizer {
  /** Tokens from the last ones on whose text was complete. */
  private tokens: number[];
  /** Of `tokens`, those whose text was returned. */
  private done: number;

  constructor(
    private readonly tokenizer: Pick<PromptTokenizer, 'decodeAfter'>,
    prompt: readonly number[],
  ) {
    this.tokens = prompt.slice(-CONTEXT);
    this.done = this.tokens.length;
  }

  /** Returns the text that a token completes. */
  push(token: number): string {
    this.tokens.push(token);
    const text = this.pending();
    const isCut = text.endsWith(REPLACEMENT) && this.tokens.length - this.done < LONGEST_CHARACTER;
    if (isCut || text === '') return '';
    this.tokens = this.tokens.slice(this.done);
    this.done = this.tokens.length;
    return text;
  }

  /** Returns the text of what is left; bytes that are no character appear as U+FFFD. */
  end(): string {
    const text = this.pending();
    this.done = this.tokens.length;
    return text;
  }

  /** Returns the text of one token behind the others. */
  textOf(token: number): string {
    return this.tokenizer.decodeAfter(this.tokens.slice(0, this.done), [token]);
  }

  private pending(): string {
    return this.tokenizer.decodeAfter(this.tokens.slice(0, this.done), this.tokens.slice(this.done));
  }
}
