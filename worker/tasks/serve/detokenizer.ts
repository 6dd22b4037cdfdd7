import type { AnswerDecoder } from '../../../formats/encoding/prompt-tokenizer.js';

/**
 * Tokens that precede each decoding, because decoders change the beginning of a text. More than the bytes of the
 * longest character.
 */
const CONTEXT = 8;
/** Most tokens of bytes at the end of a text that precede a decoding. */
const MAX_BYTES = 64;
/** Largest number of tokens that wait for the end of a character; each further token decodes them again. */
const MAX_PENDING = 64;
const REPLACEMENT = '\uFFFD';

/** Decodes a sequence token by token. The pieces add up to the text of all tokens decoded together. */
export class Detokenizer {
  /** The last tokens whose text was returned completely. */
  private context: number[];
  /** The tokens after them. Further tokens may change the end of their text. */
  private pending: number[] = [];
  /** Characters of the pending text that were returned. */
  private numReturned = 0;

  constructor(
    private readonly tokenizer: AnswerDecoder,
    prompt: readonly number[],
  ) {
    this.context = this.tail(prompt);
  }

  /** Returns the text that a token completes. Holds back bytes that may still become a character. */
  push(token: number): string {
    const kind = this.tokenizer.textKind(token);
    if (kind === 'none') return '';
    this.pending.push(token);
    // Consecutive bytes are decoded together: one invalid byte turns all of them into replacement characters.
    if (kind === 'byte') return '';
    const text = this.pendingText();
    const numPending = text.endsWith(REPLACEMENT) ? REPLACEMENT.length : 0;
    const added = text.slice(this.numReturned, text.length - numPending);
    this.numReturned = text.length - numPending;
    if (numPending === 0) this.settle(0, numPending);
    else if (this.pending.length > MAX_PENDING) this.settle(CONTEXT, numPending);
    return added;
  }

  /** Returns the remaining text. Incomplete characters become U+FFFD. */
  end(): string {
    const text = this.pendingText().slice(this.numReturned);
    this.numReturned += text.length;
    return text;
  }

  /** Returns the text that a token would have as the next one, and its bytes if it has parts of characters. */
  describe(token: number): { token: string; bytes?: number[] } {
    const bytes = Buffer.from(this.tokenizer.bytesAfter([...this.context, ...this.pending], token));
    const text = bytes.toString('utf8');
    return Buffer.from(text).equals(bytes) ? { token: text } : { token: text, bytes: [...bytes] };
  }

  private pendingText(): string {
    return this.tokenizer.decodeAfter(this.context, this.pending);
  }

  /**
   * Moves all pending tokens except the last `kept` to the context.
   * @param numPending characters at the end that were not returned
   */
  private settle(kept: number, numPending: number): void {
    const moved = this.pending.splice(0, this.pending.length - kept);
    this.context = this.tail([...this.context, ...moved]);
    this.numReturned = kept === 0 ? 0 : this.pendingText().length - numPending;
  }

  /**
   * Returns the last CONTEXT tokens that have text. If the text ends with a longer run of bytes, returns up to
   * MAX_BYTES of them, from the beginning of a character on.
   */
  private tail(tokens: readonly number[]): number[] {
    const last: number[] = [];
    let endsWithBytes = true;
    for (const token of tokens.toReversed()) {
      const kind = this.tokenizer.textKind(token);
      if (kind === 'none') continue;
      endsWithBytes &&= kind === 'byte';
      if (last.length >= (endsWithBytes ? MAX_BYTES : CONTEXT)) break;
      last.push(token);
    }
    last.reverse();
    if (last.length < MAX_BYTES) return last;
    const begins = [0, 1, 2, 3].find(
      (at) => !this.tokenizer.decodeAfter([], last.slice(at)).startsWith(REPLACEMENT),
    );
    return last.slice(begins ?? 0);
  }
}
