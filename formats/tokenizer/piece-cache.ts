/** Pieces of one generation: most words of a dataset. Some 10 MB for words of prose. */
const PIECES = 1 << 17;
/** UTF-16 units of the longest piece that is kept; longer ones seldom occur twice. */
const MAX_UNITS = 64;

/** Tokens of recent pieces. A full generation becomes the older one, and the one before it is dropped. */
export class PieceCache {
  private recent = new Map<string, readonly number[]>();
  private older = new Map<string, readonly number[]>();

  constructor(private readonly encode: (piece: string) => readonly number[]) {}

  tokens(piece: string): readonly number[] {
    const known = this.recent.get(piece);
    if (known) return known;
    const ids = this.older.get(piece) ?? this.encode(piece);
    if (piece.length > MAX_UNITS) return ids;
    if (this.recent.size >= PIECES) {
      this.older = this.recent;
      this.recent = new Map();
    }
    this.recent.set(copyOf(piece), ids);
    return ids;
  }
}

/** A slice of a string keeps the whole string in memory. */
function copyOf(piece: string): string {
  return ` ${piece}`.slice(1);
}
