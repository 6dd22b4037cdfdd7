import { DEAD, type Matcher } from './matcher.js';

/** The tokens that a text may continue with: bit t % 32 of word t / 32 for token t. */
export type TokenMask = Uint32Array;

/** The bytes of all tokens, in an order in which common beginnings are read once. */
export class Vocabulary {
  private readonly ids: Int32Array;
  private readonly bytes: Uint8Array;
  /** Offset of each token's bytes, and the end of the last one. */
  private readonly offsets: Int32Array;
  /** Number of bytes that each token has in common with the one before it. */
  private readonly common: Int32Array;
  private readonly longest: number;
  private readonly words: number;

  /**
   * @param tokens bytes by token; tokens that have no text are absent
   * @param size number of tokens of a mask
   */
  constructor(
    private readonly tokens: ReadonlyMap<number, Uint8Array>,
    size: number,
  ) {
    const sorted = [...tokens].filter(([, bytes]) => bytes.length > 0);
    sorted.sort(([, a], [, b]) => Buffer.compare(a, b));
    this.ids = Int32Array.from(sorted, ([id]) => id);
    this.bytes = Buffer.concat(sorted.map(([, bytes]) => bytes));
    this.offsets = new Int32Array(sorted.length + 1);
    this.common = new Int32Array(sorted.length);
    for (const [index, [, bytes]] of sorted.entries()) {
      this.offsets[index + 1] = (this.offsets[index] ?? 0) + bytes.length;
      this.common[index] = index === 0 ? 0 : commonLength(sorted[index - 1]?.[1] ?? bytes, bytes);
    }
    this.longest = sorted.reduce((longest, [, bytes]) => Math.max(longest, bytes.length), 0);
    this.words = Math.ceil(size / 32);
  }

  /** Returns the printable ASCII characters that no token has alone. */
  missingCharacters(): string {
    const alone = new Set<number>();
    for (let index = 0; index < this.ids.length; index++) {
      const [begin, end] = [this.offsets[index] as number, this.offsets[index + 1] as number];
      if (end - begin === 1) alone.add(this.bytes[begin] as number);
    }
    const printable = Array.from({ length: 0x7f - 0x20 }, (_, index) => 0x20 + index);
    return String.fromCharCode(...printable.filter((byte) => !alone.has(byte)));
  }

  bytesOf(token: number): Uint8Array {
    return this.tokens.get(token) ?? new Uint8Array();
  }

  /** Returns an empty mask. */
  none(): TokenMask {
    return new Uint32Array(this.words);
  }

  /** Returns the tokens whose bytes a text in a state may continue with. */
  allowed(matcher: Matcher, from: number): TokenMask {
    const { ids, bytes, offsets, common } = this;
    const mask = this.none();
    const states = new Int32Array(this.longest + 1);
    states[0] = from;
    let deadAt = this.longest;
    for (let index = 0; index < ids.length; index++) {
      let length = common[index] as number;
      if (length > deadAt) continue;
      deadAt = this.longest;
      const begin = offsets[index] as number;
      const end = (offsets[index + 1] as number) - begin;
      let state = states[length] as number;
      for (; length < end; length++) {
        state = matcher.next(state, bytes[begin + length] as number);
        if (state === DEAD) break;
        states[length + 1] = state;
      }
      if (length < end) deadAt = length;
      else allow(mask, ids[index] as number);
    }
    return mask;
  }
}

export function allow(mask: TokenMask, token: number): void {
  const word = token >>> 5;
  mask[word] = (mask[word] ?? 0) | (1 << (token & 31));
}

export function isAllowed(mask: TokenMask, token: number): boolean {
  return (((mask[token >>> 5] ?? 0) >>> (token & 31)) & 1) === 1;
}

function commonLength(a: Uint8Array, b: Uint8Array): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}
