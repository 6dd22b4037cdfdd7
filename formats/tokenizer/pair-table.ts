/** Empty slot of the table. */
const FREE = -1;

/** Ranks of pairs of ids: an open-addressed hash table, which allocates nothing at a lookup. */
export class PairTable {
  private readonly mask: number;
  private readonly lefts: Int32Array;
  private readonly rights: Int32Array;
  private readonly ranks: Int32Array;

  /** @param size upper bound of the number of pairs */
  constructor(size: number) {
    const capacity = 2 ** Math.ceil(Math.log2(2 * size + 1));
    this.mask = capacity - 1;
    this.lefts = new Int32Array(capacity);
    this.rights = new Int32Array(capacity);
    this.ranks = new Int32Array(capacity).fill(FREE);
  }

  /** Sets the rank of a pair; a later one replaces it. */
  set(left: number, right: number, rank: number): void {
    const slot = this.slotOf(left, right);
    this.lefts[slot] = left;
    this.rights[slot] = right;
    this.ranks[slot] = rank;
  }

  /** Returns the rank of a pair; -1 if it has none. */
  rank(left: number, right: number): number {
    return this.ranks[this.slotOf(left, right)] as number;
  }

  /** Returns the slot of a pair, or the free slot where it would be. */
  private slotOf(left: number, right: number): number {
    const { mask, lefts, rights, ranks } = this;
    const hash = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b);
    let slot = (hash ^ (hash >>> 15)) & mask;
    while (ranks[slot] !== FREE && (lefts[slot] !== left || rights[slot] !== right)) slot = (slot + 1) & mask;
    return slot;
  }
}
