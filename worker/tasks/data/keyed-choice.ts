/**
 * Keyed choice of `chosen` out of `count` items, evaluated item by item. An item is chosen when a keyed permutation of
 * all items maps it to one of the first `chosen` positions. The permutation is a balanced Feistel network, walked until
 * it falls inside the range. The choice needs no memory and depends only on the seed and the numbers.
 */
export class KeyedChoice {
  private readonly halfBits: number;
  private readonly keys: number[];

  /** Creates the choice. `count` may be at most 2^31. */
  constructor(
    seed: number,
    private readonly count: number,
    private readonly chosen: number,
  ) {
    // Uses integers only: V8's logarithms may be off in the last bit, which would change the choice.
    this.halfBits = Math.max(1, Math.ceil((32 - Math.clz32(count - 1)) / 2));
    const low = seed >>> 0;
    const high = Math.floor(seed / 2 ** 32) >>> 0;
    this.keys = Array.from({ length: ROUNDS }, (_, round) => mix(mix(low ^ (round * GOLDEN)) ^ high));
  }

  has(index: number): boolean {
    let position = index;
    do position = this.permute(position);
    while (position >= this.count);
    return position < this.chosen;
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

/** Finalizer of MurmurHash3 (Appleby, public domain): a bijection of 32-bit integers. */
function mix(value: number): number {
  let hash = value | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
