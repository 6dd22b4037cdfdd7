import { type ParamKind, paramName } from '../model/params.js';

/** Set of parameters of a kind: a bit for each expert of each layer. */
export class ParamSet {
  private readonly words: Int32Array;
  private readonly rowWords: number;

  private constructor(
    readonly kind: ParamKind,
    fill: number,
  ) {
    this.rowWords = Math.ceil(this.experts / 32);
    this.words = new Int32Array(kind.layers * this.rowWords).fill(fill);
  }

  static none(kind: ParamKind): ParamSet {
    return new ParamSet(kind, 0);
  }

  static all(kind: ParamKind): ParamSet {
    return new ParamSet(kind, -1);
  }

  /** Columns of a row. */
  private get experts(): number {
    return this.kind.experts ?? 1;
  }

  has(layer: number, expert: number): boolean {
    return ((this.words[layer * this.rowWords + (expert >> 5)] as number) & (1 << (expert & 31))) !== 0;
  }

  /**
   * Removes parameters.
   * @param rows of each layer, a bit for each expert; null, or no row: nothing to remove
   * @param to set that receives the removed ones
   * @returns whether any of them was in this set
   */
  remove(rows: readonly (Int32Array | null)[], to?: ParamSet): boolean {
    let moved = 0;
    for (const [layer, row] of rows.entries())
      for (let word = 0; row !== null && word < this.rowWords; word++) {
        const at = layer * this.rowWords + word;
        const found = (this.words[at] as number) & (row[word] as number);
        moved |= found;
        this.words[at] = (this.words[at] as number) ^ found;
        if (to !== undefined) to.words[at] = (to.words[at] as number) | found;
      }
    return moved !== 0;
  }

  /** Counts the members of each expert; a single number without experts. */
  countByExpert(): number[] {
    const counts = new Array<number>(this.experts).fill(0);
    if (this.words.every((word) => word === 0)) return counts;
    for (let layer = 0; layer < this.kind.layers; layer++)
      for (let expert = 0; expert < counts.length; expert++)
        if (this.has(layer, expert)) counts[expert] = (counts[expert] as number) + 1;
    return counts;
  }

  *names(): Generator<string> {
    for (const [at, word] of this.words.entries()) yield* this.namesOf(at, word);
  }

  /**
   * Returns the name of a parameter that is in exactly one of this set and another one of the kind; null if
   * there is none.
   */
  difference(other: ParamSet): string | null {
    for (const [at, word] of this.words.entries())
      for (const name of this.namesOf(at, word ^ (other.words[at] as number))) return name;
    return null;
  }

  private *namesOf(at: number, word: number): Generator<string> {
    const [layer, first] = [Math.floor(at / this.rowWords), (at % this.rowWords) * 32];
    const last = Math.min(first + 32, this.experts);
    for (let expert = first; word !== 0 && expert < last; expert++)
      if ((word & (1 << (expert & 31))) !== 0) yield paramName(this.kind, layer, expert);
  }
}
