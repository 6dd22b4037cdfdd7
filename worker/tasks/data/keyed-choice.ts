/**
 * Keyed permutation of `count` items, evaluated item by item: a balanced Feistel network, walked until it falls inside
 * the range. It needs no memory and depends only on the seed and the number.
 */
export class KeyedPermutation {
  private readonly halfBits: number;
  private readonly keys: number[];

  /** Creates the permutation. `count` may be at most 2^31. */
  constructor(
    seed: number,
    private readonly count: number,
  ) {
    // Uses integers only: V8's logarithms may be off in the last bit, which would change the order.
    this.halfBits = Math.max(1, Math.ceil((32 - Math.clz32(count - 1)) / 2));
    const low = seed >>> 0;
    const high = Math.floor(seed / 2 ** 32) >>> 0;
    this.keys = Array.from({ length: ROUNDS }, (_, round) => mix(mix(low ^ (round * GOLDEN)) ^ high));
  }

  /** Returns the item to which the permutation maps `index`. */
  at(index: number): number {
    let position = index;
    do position = this.permute(position);
    while (position >= this.count);
    return position;
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

/** Keyed choice of `chosen` out of `count` items: those that a keyed permutation maps to the first positions. */
export class KeyedChoice {
  private readonly permutation: KeyedPermutation;

  constructor(
    seed: number,
    count: number,
    private readonly chosen: number,
  ) {
    this.permutation = new KeyedPermutation(seed, count);
  }

  has(index: number): boolean {
    return this.permutation.at(index) < this.chosen;
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
