import { byteToken, unitsAt } from './characters.js';
import { type Component, refused } from './fields.js';
import type { TokenModel } from './token-model.js';
import { Vocabulary } from './vocabulary.js';

/** Distance of an unknown character's score below the worst token. */
const UNKNOWN_PENALTY = 10;

const BYTE_TOKENS = Array.from({ length: 256 }, (_, byte) => byteToken(byte));

interface Node {
  begin: number;
  id: number;
  score: number;
}

/**
 * Unigram: chooses the tokens with the largest sum of scores; consecutive unknown characters are one token.
 */
export class Unigram implements TokenModel {
  readonly vocabulary: Vocabulary;
  private readonly scores: readonly number[];
  private readonly unknown: number | null;
  private readonly unknownScore: number;
  private readonly byteFallback: boolean;
  /** Units of the longest token by its first UTF-16 unit. */
  private readonly longest = new Map<string, number>();

  constructor(component: Component, reserved: ReadonlySet<string>) {
    const entries = component.list('vocab').map((entry, index) => {
      const [token, score] = Array.isArray(entry) ? (entry as unknown[]) : [];
      if (typeof token !== 'string' || typeof score !== 'number')
        throw refused(`${component.path}.vocab[${index}] is not a token with a score`);
      return [token, score] as const;
    });
    this.byteFallback = component.boolean('byte_fallback', false);
    this.vocabulary = new Vocabulary(
      new Map(entries.map(([token], id) => [token, id])),
      this.byteFallback ? new Set([...reserved, ...BYTE_TOKENS]) : reserved,
    );
    this.scores = entries.map(([, score]) => score);
    this.unknownScore =
      this.scores.reduce((least, score) => Math.min(least, score), Infinity) - UNKNOWN_PENALTY;
    this.unknown = component.value('unk_id') === null ? null : component.count('unk_id', 0);
    if (this.unknown !== null && this.unknown >= entries.length) throw component.bad('unk_id');
    for (const option of ['alpha', 'nbest_size'])
      if (component.value(option) !== null)
        throw component.unread(`${option}, which draws tokens at random,`);
    for (const [token] of entries) {
      const first = token[0] ?? '';
      this.longest.set(first, Math.max(this.longest.get(first) ?? 0, token.length));
    }
  }

  encode(piece: string): readonly number[] {
    const best = this.bestPath(piece);
    const found: number[] = [];
    for (let end = piece.length; end > 0; ) {
      const node = best[end] as Node;
      let { begin } = node;
      if (node.id === this.unknown) {
        while (begin > 0 && best[begin]?.id === this.unknown) begin = best[begin]?.begin ?? 0;
        found.push(...this.unknownTokens(piece.slice(begin, end)).toReversed());
      } else found.push(node.id);
      end = begin;
    }
    return found.reverse();
  }

  private bestPath(piece: string): (Node | undefined)[] {
    const best: (Node | undefined)[] = [];
    const offer = (begin: number, end: number, id: number, score: number) => {
      const bestAtEnd = best[end];
      if (!bestAtEnd || score > bestAtEnd.score) best[end] = { begin, id, score };
    };
    for (let begin = 0; begin < piece.length; ) {
      const untilHere = best[begin]?.score ?? 0;
      const units = unitsAt(piece, begin);
      const limit = Math.min(piece.length, begin + (this.longest.get(piece[begin] ?? '') ?? 0));
      let single = false;
      for (let end = begin + units; end <= limit; end++) {
        const id = this.vocabulary.spelled(piece.slice(begin, end));
        if (id === undefined) continue;
        offer(begin, end, id, (this.scores[id] ?? 0) + untilHere);
        single ||= end === begin + units;
      }
      if (!single) offer(begin, begin + units, this.unknownId(), this.unknownScore + untilHere);
      begin += units;
    }
    return best;
  }

  /** A run of unknown characters that equals a token becomes that token. */
  private unknownTokens(text: string): readonly number[] {
    const id = this.vocabulary.spelled(text);
    if (id !== undefined) return [id];
    return (this.byteFallback ? this.vocabulary.bytes(text) : null) ?? [this.unknownId()];
  }

  private unknownId(): number {
    if (this.unknown === null) throw refused('its model has no unk_id, and a character has no token');
    return this.unknown;
  }
}
