import { stemmer } from 'stemmer';
import { words } from './tokens.js';

const ALPHA = 0.9;
const BETA = 3;
const GAMMA = 0.5;

/** Pair of positions in the input and in the reference. */
type Match = readonly [input: number, reference: number];

/**
 * Banerjee and Lavie 2005 with equal words and equal stems (Porter), without synonyms: a mean of precision and recall
 * that weights recall, times a penalty for matches that are not contiguous.
 */
export function meteor(input: string, reference: string): number {
  const [a, b] = [words(input.toLowerCase()), words(reference.toLowerCase())];
  const exact = matched([...a.entries()], [...b.entries()]);
  const stems = (entries: readonly [number, string][]) =>
    entries.map(([index, word]): [number, string] => [index, stemmer(word)]);
  const { matches } = matched(stems(exact.restOfInput), stems(exact.restOfReference));
  const all = [...exact.matches, ...matches].sort(([first], [second]) => first - second);
  if (all.length === 0) return 0;
  const [precision, recall] = [all.length / a.length, all.length / b.length];
  const mean = (precision * recall) / (ALPHA * precision + (1 - ALPHA) * recall);
  return mean * (1 - GAMMA * (numChunks(all) / all.length) ** BETA);
}

/** Matches each word, from the last one on, with the last equal word that is left. */
function matched(input: readonly [number, string][], reference: readonly [number, string][]) {
  const left = new Map<string, number[]>();
  for (const [index, word] of reference) {
    const places = left.get(word);
    if (places === undefined) left.set(word, [index]);
    else places.push(index);
  }
  const matches: Match[] = [];
  const restOfInput: [number, string][] = [];
  for (const [index, word] of input.toReversed()) {
    const found = left.get(word)?.pop();
    if (found === undefined) restOfInput.push([index, word]);
    else matches.push([index, found]);
  }
  const taken = new Set(matches.map(([, index]) => index));
  return {
    matches,
    restOfInput: restOfInput.reverse(),
    restOfReference: reference.filter(([index]) => !taken.has(index)),
  };
}

/** Number of runs of matches that are contiguous in both texts. */
function numChunks(matches: readonly Match[]): number {
  const continues = ([input, reference]: Match, [before, beforeReference]: Match) =>
    input === before + 1 && reference === beforeReference + 1;
  return matches.filter((match, index) => index === 0 || !continues(match, matches[index - 1] as Match))
    .length;
}
