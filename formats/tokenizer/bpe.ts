import { type Component, refused } from './fields.js';
import { MergeQueue } from './merge-queue.js';
import { PairTable } from './pair-table.js';
import type { TokenModel } from './token-model.js';
import { Vocabulary } from './vocabulary.js';

/** Up to this number of symbols, looking at all pairs again costs less than a queue. */
const FEW_SYMBOLS = 20;

interface Symbols {
  ids: Int32Array;
  /** Positions of the neighbours; -1: none. */
  previous: Int32Array;
  next: Int32Array;
}

/** BPE: one token for each character, then neighbours are merged, lowest rank first, then leftmost. */
export class Bpe implements TokenModel {
  readonly vocabulary: Vocabulary;
  /** Ranks of pairs. */
  private readonly ranks: PairTable;
  /** Result of the merge by rank. */
  private readonly merged: number[] = [];
  private readonly unknown: string | null;
  private readonly prefix: string;
  private readonly suffix: string;
  private readonly fuseUnknown: boolean;
  private readonly byteFallback: boolean;
  private readonly ignoreMerges: boolean;

  constructor(component: Component, reserved: ReadonlySet<string>) {
    this.vocabulary = Vocabulary.read(component, reserved);
    this.unknown = component.value('unk_token') === null ? null : component.string('unk_token');
    this.prefix = component.string('continuing_subword_prefix', '');
    this.suffix = component.string('end_of_word_suffix', '');
    this.fuseUnknown = component.boolean('fuse_unk', false);
    this.byteFallback = component.boolean('byte_fallback', false);
    this.ignoreMerges = component.boolean('ignore_merges', false);
    if ((component.value('dropout') ?? 0) !== 0) throw component.unread('dropout, which merges at random,');
    const merges = component.list('merges');
    this.ranks = new PairTable(merges.length);
    for (const [rank, merge] of merges.entries()) this.addMerge(component, rank, merge);
  }

  encode(piece: string): readonly number[] {
    const whole = this.ignoreMerges ? this.vocabulary.spelled(piece) : undefined;
    if (whole !== undefined) return [whole];
    const symbols = this.characters(piece);
    return symbols.length <= FEW_SYMBOLS ? this.mergeFew(symbols) : this.merge(symbols);
  }

  private addMerge(component: Component, rank: number, merge: unknown): void {
    const path = `${component.path}.merges[${rank}]`;
    const [left, right, ...rest] = typeof merge === 'string' ? merge.split(' ') : (merge as unknown[]);
    if (typeof left !== 'string' || typeof right !== 'string' || rest.length > 0)
      throw refused(`${path} is not a pair of tokens`);
    const joined = left + right.slice(this.prefix.length);
    const ids = [left, right, joined].map((token) => this.vocabulary.named(token, path));
    if (this.vocabulary.spelled(joined) === undefined) return;
    const [leftId = 0, rightId = 0, joinedId = 0] = ids;
    this.ranks.set(leftId, rightId, rank);
    this.merged[rank] = joinedId;
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

  private mergeFew(ids: number[]): readonly number[] {
    for (;;) {
      let lowest = -1;
      let position = 0;
      for (let at = 0; at + 1 < ids.length; at++) {
        const rank = this.ranks.rank(ids[at] as number, ids[at + 1] as number);
        if (rank < 0 || (lowest >= 0 && rank >= lowest)) continue;
        lowest = rank;
        position = at;
      }
      if (lowest < 0) return ids;
      ids.splice(position, 2, this.merged[lowest] as number);
    }
  }

  private merge(characters: readonly number[]): readonly number[] {
    const { length } = characters;
    const symbols: Symbols = {
      ids: Int32Array.from(characters),
      previous: Int32Array.from(characters, (_, index) => index - 1),
      next: Int32Array.from(characters, (_, index) => (index + 1 < length ? index + 1 : -1)),
    };
    const queue = new MergeQueue();
    for (let position = 0; position < length; position++) this.propose(symbols, queue, position);
    for (let top = queue.pop(); top !== null; top = queue.pop()) {
      const { rank, position } = top;
      // The pair may have changed. A changed pair is longer, and has another rank.
      if (this.rankAt(symbols, position) !== rank) continue;
      this.join(symbols, position, this.merged[rank] as number);
      const before = symbols.previous[position] ?? -1;
      if (before >= 0) this.propose(symbols, queue, before);
      this.propose(symbols, queue, position);
    }
    return Array.from(symbols.ids.filter((id) => id >= 0));
  }

  private propose(symbols: Symbols, queue: MergeQueue, position: number): void {
    const rank = this.rankAt(symbols, position);
    if (rank >= 0) queue.push({ rank, position });
  }

  /** Returns the rank of the pair that begins at a position; -1 if there is none. */
  private rankAt({ ids, next }: Symbols, position: number): number {
    const left = ids[position] ?? -1;
    const right = next[position] ?? -1;
    return left < 0 || right < 0 ? -1 : this.ranks.rank(left, ids[right] as number);
  }

  private join({ ids, previous, next }: Symbols, position: number, id: number): void {
    const right = next[position] ?? -1;
    const after = next[right] ?? -1;
    ids[position] = id;
    ids[right] = -1;
    next[position] = after;
    if (after >= 0) previous[after] = position;
  }
}
