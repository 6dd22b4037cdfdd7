import type { Pattern, Range } from './pattern.js';

/** Treatment of the matches of a pattern. */
export const BEHAVIORS = [
  'Removed',
  'Isolated',
  'MergedWithPrevious',
  'MergedWithNext',
  'Contiguous',
] as const;
export type Behavior = (typeof BEHAVIORS)[number];

/** Part of a text. */
export interface Piece {
  text: string;
  /** True if it begins the text passed to the tokenizer. */
  first: boolean;
}

export function splitPiece(piece: Piece, pattern: Pattern, behavior: Behavior): Piece[] {
  const words = behavior === 'Isolated' ? pattern.words?.(piece.text) : null;
  if (words) return words.map((text, index) => ({ text, first: piece.first && index === 0 }));
  return joined(pattern(piece.text), behavior).map(({ begin, end }) => ({
    text: piece.text.slice(begin, end),
    first: piece.first && begin === 0,
  }));
}

function joined(ranges: readonly Range[], behavior: Behavior): readonly Range[] {
  switch (behavior) {
    case 'Isolated':
      return ranges;
    case 'Removed':
      return ranges.filter(({ matches }) => !matches);
    case 'Contiguous':
      return folded(ranges, (range, previousMatched) => range.matches === previousMatched);
    case 'MergedWithPrevious':
      return folded(ranges, (range, previousMatched) => range.matches && !previousMatched);
    case 'MergedWithNext':
      return folded(ranges.toReversed(), (range, nextMatched) => range.matches && !nextMatched).toReversed();
  }
}

/** Joins a range to the previous one if `joins` returns true. */
function folded(
  ranges: readonly Range[],
  joins: (range: Range, previousMatched: boolean) => boolean,
): Range[] {
  const found: Range[] = [];
  let previousMatched = false;
  for (const range of ranges) {
    const last = found.at(-1);
    if (last && joins(range, previousMatched)) {
      last.begin = Math.min(last.begin, range.begin);
      last.end = Math.max(last.end, range.end);
    } else found.push({ ...range });
    previousMatched = range.matches;
  }
  return found;
}
