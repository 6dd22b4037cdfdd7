import { unitsAt } from '../tokenizer/characters.js';
import type { Piece } from './model-file.js';

/** Texts of all merges together, in UTF-16 units: those of 262,144 pieces have some ten million. */
const MAX_UNITS = 1 << 26;
/** Characters of the longest run among pieces of one score; that of Llama is 16 spaces. */
const MAX_RUN = 64;

type Refuse = (problem: string) => Error;

/**
 * Returns the merges of BPE, first ones first. SentencePiece merges the neighbours whose joined text is the piece of the
 * highest score; so each pair of pieces whose text is a piece is a merge.
 */
export function mergesOf(pieces: readonly Piece[], refuse: Refuse): [string, string][] {
  const normal = pieces.filter(({ type }) => type === 'normal');
  const texts = new Set(normal.map(({ text }) => text));
  const merges: [string, string][] = [];
  const byScore = new Map<number, string[]>();
  let units = 0;
  for (const { text, score } of normal.toSorted((a, b) => b.score - a.score)) {
    const first = unitsAt(text, 0);
    if (first === text.length) continue;
    const before = merges.length;
    for (let at = first; at < text.length; at += unitsAt(text, at)) {
      const [left, right] = [text.slice(0, at), text.slice(at)];
      if (texts.has(left) && texts.has(right)) merges.push([left, right]);
    }
    if (merges.length === before)
      throw refuse(`has the piece ${JSON.stringify(text)}, which no two other pieces make`);
    units += (merges.length - before) * text.length;
    if (units > MAX_UNITS) throw refuse('has too many long pieces that consist of others');
    const same = byScore.get(score);
    if (same) same.push(text);
    else byScore.set(score, [text]);
  }
  for (const same of byScore.values()) checkEqualScores(same, refuse);
  return merges;
}

/**
 * Of pieces with one score, SentencePiece makes whichever stands first in a text, and merges make one after another.
 * Both make the same of the runs of a character that Llama and Mistral have with one score.
 * @param texts in the order of their merges
 */
function checkEqualScores(texts: readonly string[], refuse: Refuse): void {
  if (texts.length === 1) return;
  const runs = new Map<string, number[]>();
  for (const text of texts) {
    const [character = '', ...others] = text;
    const length = others.length + 1;
    if (length > MAX_RUN || others.some((other) => other !== character))
      throw refuse(`has the same score for ${JSON.stringify(texts[0])} and ${JSON.stringify(texts[1])}`);
    runs.set(character, [...(runs.get(character) ?? []), length]);
  }
  for (const [character, lengths] of runs)
    for (let length = 2; length <= 2 * Math.max(...lengths); length++) {
      const leftmost = merged(length, lengths, () => 0);
      const byRank = merged(length, lengths, (sum) => lengths.indexOf(sum));
      if (leftmost.join() !== byRank.join())
        throw refuse(`has runs of ${JSON.stringify(character)} with one score that no merges make`);
    }
}

/**
 * Merges a run of single characters until no two neighbours make a run of one of the lengths.
 * @param rank which sum is merged first; the leftmost one of the least
 */
function merged(length: number, lengths: readonly number[], rank: (sum: number) => number): number[] {
  const parts = Array<number>(length).fill(1);
  for (;;) {
    let best: { at: number; rank: number } | null = null;
    for (let at = 0; at + 1 < parts.length; at++) {
      const sum = (parts[at] ?? 0) + (parts[at + 1] ?? 0);
      if (lengths.includes(sum) && (best === null || rank(sum) < best.rank)) best = { at, rank: rank(sum) };
    }
    if (best === null) return parts;
    parts.splice(best.at, 2, (parts[best.at] ?? 0) + (parts[best.at + 1] ?? 0));
  }
}
