import { unitsAt } from '../tokenizer/characters.js';
import type { Piece } from './model-file.js';

/** Texts of all merges together, in UTF-16 units: those of 262,144 pieces have some ten million. */
const MAX_UNITS = 1 << 26;
/** Characters of the longest run among pieces of one score; that of Llama is 16 spaces. */
const MAX_RUN = 64;

/** A piece that is a run of one character. */
interface Run {
  length: number;
  score: number;
}

type Refuse = (problem: string) => Error;

/**
 * Returns the merges of BPE, first ones first. SentencePiece merges the neighbours whose joined text is the piece of
 * the highest score; so each pair of pieces whose text is a piece is a merge.
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
  const runs = new Map<string, Run[]>();
  for (const [score, same] of byScore) checkEqualScores(same, { score, runs }, refuse);
  return merges;
}

/**
 * Of pieces with one score, SentencePiece makes whichever stands first in a text, and merges make one after another.
 * Both make the same of the runs of a character that Llama and Mistral have with one score.
 * @param texts in the order of their merges
 * @param runs those of higher scores by character, in the order of their merges; gets those of `texts`
 */
function checkEqualScores(
  texts: readonly string[],
  { score, runs }: { score: number; runs: Map<string, Run[]> },
  refuse: Refuse,
): void {
  const longest = new Map<string, number>();
  for (const text of texts) {
    const [character = '', ...others] = text;
    const length = others.length + 1;
    const isRun = length <= MAX_RUN && others.every((other) => other === character);
    if (!isRun && texts.length > 1)
      throw refuse(`has the same score for ${JSON.stringify(texts[0])} and ${JSON.stringify(texts[1])}`);
    if (!isRun) return;
    longest.set(character, Math.max(length, longest.get(character) ?? 0));
    const before = runs.get(character);
    if (before) before.push({ length, score });
    else runs.set(character, [{ length, score }]);
  }
  if (texts.length === 1) return;
  for (const [character, most] of longest) {
    const known = runs.get(character) ?? [];
    const ranks = new Map(known.map(({ length }, rank) => [length, rank]));
    const scores = new Map(known.map((run) => [run.length, -run.score]));
    for (let length = 2; length <= 2 * most; length++) {
      const leftmost = merged(length, (sum) => scores.get(sum));
      // Of the merges that make one piece, that with the shortest left part is the first one.
      const byRank = merged(length, (sum, left) => {
        const rank = ranks.get(sum);
        return rank === undefined ? undefined : rank * MAX_RUN + left;
      });
      if (leftmost.join() !== byRank.join())
        throw refuse(`has runs of ${JSON.stringify(character)} with one score that no merges make`);
    }
  }
}

/**
 * Merges a run of single characters until no two neighbours may be merged.
 * @param rank of a merge by the lengths of its result and its left part: the leftmost one of the least is made first;
 *   undefined: there is none
 */
function merged(length: number, rank: (sum: number, left: number) => number | undefined): number[] {
  const parts = Array<number>(length).fill(1);
  for (;;) {
    let best: { at: number; rank: number } | null = null;
    for (let at = 0; at + 1 < parts.length; at++) {
      const left = parts[at] ?? 0;
      const found = rank(left + (parts[at + 1] ?? 0), left);
      if (found !== undefined && (best === null || found < best.rank)) best = { at, rank: found };
    }
    if (best === null) return parts;
    parts.splice(best.at, 2, (parts[best.at] ?? 0) + (parts[best.at + 1] ?? 0));
  }
}
