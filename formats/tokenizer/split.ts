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
      return folded(ranges, (range, previous_matched) => range.matches === previous_matched);
    case 'MergedWithPrevious':
      return folded(ranges, (range, previous_matched) => range.matches && !previous_matched);
    case 'MergedWithNext':
      return folded(
        ranges.toReversed(),
        (range, next_matched) => range.matches && !next_matched,
      ).toReversed();
  }
}

/** Joins a range to the previous one if `joins` returns true. */
function folded(
  ranges: readonly Range[],
  joins: (range: Range, previous_matched: boolean) => boolean,
): Range[] {
  const found: Range[] = [];
  let previous_matched = false;
  for (const range of ranges) {
    const last = found.at(-1);
    if (last && joins(range, previous_matched)) {
      last.begin = Math.min(last.begin, range.begin);
      last.end = Math.max(last.end, range.end);
    } else found.push({ ...range });
    previous_matched = range.matches;
  }
  return found;
}
