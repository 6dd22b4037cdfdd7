import { unitsAt } from '../tokenizer/characters.js';
import type { Piece } from './model-file.js';

/** Texts of all merges together, in UTF-16 units: those of 262,144 pieces have some ten million. */
const MAX_UNITS = 1 << 26;

/**
 * Returns the merges of BPE, first ones first. SentencePiece merges the neighbours whose joined text is the piece of the
 * highest score; so each pair of pieces whose text is a piece is a merge.
 */
export function mergesOf(pieces: readonly Piece[], refuse: (problem: string) => Error): [string, string][] {
  const normal = pieces.filter(({ type }) => type === 'normal');
  const texts = new Set(normal.map(({ text }) => text));
  const merges: [string, string][] = [];
  let units = 0;
  let last: Piece | null = null;
  for (const piece of normal.toSorted((a, b) => b.score - a.score)) {
    const { text } = piece;
    const before = merges.length;
    for (let at = unitsAt(text, 0); at < text.length; at += unitsAt(text, at)) {
      const [left, right] = [text.slice(0, at), text.slice(at)];
      if (texts.has(left) && texts.has(right)) merges.push([left, right]);
    }
    units += (merges.length - before) * text.length;
    if (units > MAX_UNITS) throw refuse('has too many long pieces that consist of others');
    if (merges.length > before) {
      // SentencePiece would merge whichever stands first in a text.
      if (last?.score === piece.score)
        throw refuse(`has the same score for ${JSON.stringify(last.text)} and ${JSON.stringify(text)}`);
      last = piece;
    } else if (text.length > unitsAt(text, 0))
      throw refuse(`has the piece ${JSON.stringify(text)}, which no two other pieces make`);
  }
  return merges;
}
