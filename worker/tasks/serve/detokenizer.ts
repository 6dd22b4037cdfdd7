import type { AnswerDecoder } from '../../../formats/encoding/prompt-tokenizer.js';

/** Tokens with text that others are decoded behind: decoders change the beginning of a text. No character has more bytes. */
const CONTEXT = 8;
/** Tokens of bytes at the end of a text that others are decoded behind. */
const MAX_BYTES = 64;
/** Tokens in which no character ends that are decoded again with each further one. */
const MAX_PENDING = 64;
const REPLACEMENT = '\uFFFD';

/** Decodes a text token by token, to what all of its tokens are decoded to together. */
export class Detokenizer {
  /** The last tokens whose text was returned. */
  private context: number[];
  /** Tokens behind them: further ones may change the end of their text. */
  private pending: number[] = [];
  /** Characters of it that were returned. */
  private told = 0;

  constructor(
    private readonly tokenizer: AnswerDecoder,
    prompt: readonly number[],
  ) {
    this.context = this.tail(prompt);
  }

  /** Returns the text that a token completes. Bytes that may still become a character are held back. */
  push(token: number): string {
    const kind = this.tokenizer.textKind(token);
    if (kind === 'none') return '';
    this.pending.push(token);
    // Bytes are decoded together: a wrong one makes replacement characters of all of them.
    if (kind === 'byte') return '';
    const text = this.pendingText();
    const held = text.endsWith(REPLACEMENT) ? REPLACEMENT.length : 0;
    const more = text.slice(this.told, text.length - held);
    this.told = text.length - held;
    if (held === 0) this.settle(0, held);
    else if (this.pending.length > MAX_PENDING) this.settle(CONTEXT, held);
    return more;
  }

  /** Returns the text of what is left; bytes that are no character appear as U+FFFD. */
  end(): string {
    const text = this.pendingText().slice(this.told);
    this.told += text.length;
    return text;
  }

  /** Returns the text of one token behind the others. */
  textOf(token: number): string {
    return this.tokenizer.decodeAfter(this.context, [token]);
  }

  private pendingText(): string {
    return this.tokenizer.decodeAfter(this.context, this.pending);
  }

  /** Moves pending tokens but the last `kept` ones to the context. @param held characters at the end that were not returned */
  private settle(kept: number, held: number): void {
    const moved = this.pending.splice(0, this.pending.length - kept);
    this.context = this.tail([...this.context, ...moved]);
    this.told = kept === 0 ? 0 : this.pendingText().length - held;
  }

  /** Returns the last tokens that have text. Where the text ends with bytes, more of them, from the beginning of a character on. */
  private tail(tokens: readonly number[]): number[] {
    const found: number[] = [];
    let ends_with_bytes = true;
    for (const token of tokens.toReversed()) {
      const kind = this.tokenizer.textKind(token);
      if (kind === 'none') continue;
      ends_with_bytes &&= kind === 'byte';
      if (found.length >= (ends_with_bytes ? MAX_BYTES : CONTEXT)) break;
      found.push(token);
    }
    found.reverse();
    if (found.length < MAX_BYTES) return found;
    const begins = [0, 1, 2, 3].find(
      (at) => !this.tokenizer.decodeAfter([], found.slice(at)).startsWith(REPLACEMENT),
    );
    return found.slice(begins ?? 0);
  }
}
