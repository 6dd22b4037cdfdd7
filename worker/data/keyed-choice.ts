/**
 * A keyed choice of `chosen` out of `count` things, told one by one: a thing is chosen when a keyed permutation of all of
 * them (a balanced Feistel network, walked until it falls inside the range) puts it among the first. Nothing is held for
 * it, and it depends on seed and numbers alone.
 */
export class KeyedChoice {
  private readonly halfBits: number;
  private readonly keys: number[];

  /** `count` up to 2^31. */
  constructor(
    seed: number,
    private readonly count: number,
    private readonly chosen: number,
  ) {
    // Whole numbers only: logarithms of V8 may be off in the last bit, and then so would be every choice.
    this.halfBits = Math.max(1, Math.ceil((32 - Math.clz32(count - 1)) / 2));
    const low = seed >>> 0;
    const high = Math.floor(seed / 2 ** 32) >>> 0;
    this.keys = Array.from({ length: ROUNDS }, (_, round) => mix(mix(low ^ (round * GOLDEN)) ^ high));
  }

  has(index: number): boolean {
    let place = index;
    do place = this.permute(place);
    while (place >= this.count);
    return place < this.chosen;
  }

  private permute(value: number): number {
    const size = 1 << this.halfBits;
    let left = Math.floor(value / size);
    let right = value % size;
    for (const key of this.keys) {
      const next = (left ^ mix(right ^ key)) & (size - 1);
      left = right;
      right = next;
    }
    return left * size + right;
  }
}

const ROUNDS = 6;
const GOLDEN = 0x9e3779b9;

/** The finalizer of MurmurHash3 (Appleby, public domain): 32 bits to 32 bits, one to one. */
function mix(value: number): number {
  let hash = value | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
