import { type Component, refused } from './fields.js';
import { MergeQueue } from './merge-queue.js';
import type { TokenModel } from './token-model.js';
import { Vocabulary } from './vocabulary.js';

/** Upper bound of ids; a pair is encoded as one number. */
const PAIR_BASE = 2 ** 24;
/** Number of cached pieces, and the longest cached piece in units. */
const CACHE_PIECES = 10_000;
const CACHE_UNITS = 256;

interface Symbols {
  ids: Int32Array;
  /** Positions of the neighbours; -1: none. */
  previous: Int32Array;
  next: Int32Array;
  length: number;
}

/** BPE: one token for each character, then neighbours are merged, lowest rank first, then leftmost. */
export class Bpe implements TokenModel {
  readonly vocabulary: Vocabulary;
  /** Ranks of pairs. */
  private readonly ranks = new Map<number, number>();
  /** Result of the merge by rank. */
  private readonly merged: number[] = [];
  private readonly unknown: string | null;
  private readonly prefix: string;
  private readonly suffix: string;
  private readonly fuseUnknown: boolean;
  private readonly byteFallback: boolean;
  private readonly ignoreMerges: boolean;
  private readonly cache = new Map<string, readonly number[]>();

  constructor(component: Component) {
    this.vocabulary = Vocabulary.of(component);
    this.unknown = component.value('unk_token') === null ? null : component.string('unk_token');
    this.prefix = component.string('continuing_subword_prefix', '');
    this.suffix = component.string('end_of_word_suffix', '');
    this.fuseUnknown = component.boolean('fuse_unk', false);
    this.byteFallback = component.boolean('byte_fallback', false);
    this.ignoreMerges = component.boolean('ignore_merges', false);
    if ((component.value('dropout') ?? 0) !== 0) throw component.unread('dropout, which merges at random,');
    for (const [rank, merge] of component.list('merges').entries()) this.addMerge(component, rank, merge);
  }

  encode(piece: string): readonly number[] {
    const whole = this.ignoreMerges ? this.vocabulary.id(piece) : undefined;
    if (whole !== undefined) return [whole];
    const known = this.cache.get(piece);
    if (known) return known;
    const ids = this.merge(this.characters(piece));
    if (piece.length < CACHE_UNITS) {
      if (this.cache.size >= CACHE_PIECES) this.cache.clear();
      this.cache.set(piece, ids);
    }
    return ids;
  }

  private addMerge(component: Component, rank: number, merge: unknown): void {
    const place = `${component.place}.merges[${rank}]`;
    const [left, right, ...rest] = typeof merge === 'string' ? merge.split(' ') : (merge as unknown[]);
    if (typeof left !== 'string' || typeof right !== 'string' || rest.length > 0)
      throw refused(`${place} is not a pair of tokens`);
    const pair = this.vocabulary.named(left, place) * PAIR_BASE + this.vocabulary.named(right, place);
    this.ranks.set(pair, rank);
    this.merged[rank] = this.vocabulary.named(left + right.slice(this.prefix.length), place);
  }

  private characters(piece: string): number[] {
    const found: number[] = [];
    // The token of an unknown character waits for the next character that is not read as bytes.
    let waiting = false;
    for (const text of this.symbolsOf(piece)) {
      const id = this.vocabulary.id(text);
      const bytes = id === undefined && this.byteFallback ? this.vocabulary.bytes(text) : null;
      if (bytes) found.push(...bytes);
      else if (id !== undefined) {
        if (waiting) found.push(this.unknownId());
        found.push(id);
        waiting = false;
      } else if (this.unknown !== null) {
        if (waiting && !this.fuseUnknown) found.push(this.unknownId());
        waiting = true;
      }
    }
    if (waiting) found.push(this.unknownId());
    return found;
  }

  /** Returns the characters of a piece as the vocabulary writes them. */
  private symbolsOf(piece: string): string[] {
    const characters = [...piece];
    const last = characters.length - 1;
    return characters.map(
      (character, at) => (at > 0 ? this.prefix : '') + character + (at === last ? this.suffix : ''),
    );
  }

  private unknownId(): number {
    return this.vocabulary.named(this.unknown ?? '', 'model.unk_token');
  }

  private merge(characters: readonly number[]): readonly number[] {
    const { length } = characters;
    const symbols: Symbols = {
      ids: Int32Array.from(characters),
      previous: Int32Array.from(characters, (_, index) => index - 1),
      next: Int32Array.from(characters, (_, index) => (index + 1 < length ? index + 1 : -1)),
      length,
    };
    const queue = new MergeQueue();
    for (let place = 0; place < length; place++) this.propose(symbols, queue, place);
    for (let top = queue.pop(); top !== null; top = queue.pop()) {
      const { rank, place } = top;
      // The pair may have changed; its result decides, not its rank.
      const current = this.rankAt(symbols, place);
      if (current === undefined || this.merged[current] !== this.merged[rank]) continue;
      this.join(symbols, place, this.merged[rank] as number);
      const before = symbols.previous[place] ?? -1;
      if (before >= 0) this.propose(symbols, queue, before);
      this.propose(symbols, queue, place);
    }
    return symbols.ids.filter((id) => id >= 0) as unknown as readonly number[];
  }

  private propose(symbols: Symbols, queue: MergeQueue, place: number): void {
    const rank = this.rankAt(symbols, place);
    if (rank !== undefined) queue.push({ rank, place });
  }

  private rankAt({ ids, next }: Symbols, place: number): number | undefined {
    const left = ids[place] ?? -1;
    const right = next[place] ?? -1;
    if (left < 0 || right < 0) return undefined;
    return this.ranks.get(left * PAIR_BASE + (ids[right] ?? 0));
  }

  private join({ ids, previous, next }: Symbols, place: number, id: number): void {
    const right = next[place] ?? -1;
    const after = next[right] ?? -1;
    ids[place] = id;
    ids[right] = -1;
    next[place] = after;
    if (after >= 0) previous[after] = place;
  }
}
