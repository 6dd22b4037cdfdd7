/** Similarity of an answer (the input) and a reference, from 0 to 1. docs/graders.md has the definitions. */
import type { TextSimilarityGrader } from '../../contracts/index.js';
import { meteor } from './meteor.js';
import { commonLength, nGrams, overlap, plainWords, words } from './tokens.js';

type Metric = (input: string, reference: string) => number;

/** The longest n-grams of BLEU and GLEU. */
const ORDER = 4;

export const METRICS: Readonly<Record<TextSimilarityGrader['evaluation_metric'], Metric>> = {
  fuzzy_match: fuzzyMatch,
  bleu,
  gleu,
  meteor,
  rouge_1: (input, reference) => rouge(input, reference, 1),
  rouge_2: (input, reference) => rouge(input, reference, 2),
  rouge_3: (input, reference) => rouge(input, reference, 3),
  rouge_4: (input, reference) => rouge(input, reference, 4),
  rouge_5: (input, reference) => rouge(input, reference, 5),
  rouge_l: rougeL,
};

/** 2 · LCS / (|input| + |reference|), over characters. */
function fuzzyMatch(input: string, reference: string): number {
  const [a, b] = [[...input], [...reference]];
  return a.length + b.length === 0 ? 1 : (2 * commonLength(a, b)) / (a.length + b.length);
}

/**
 * Papineni et al. 2002 for one sentence, without smoothing: the geometric mean of the clipped precisions of n-grams
 * times the brevity penalty. An input of fewer than 4 words is measured by the n-grams that it has.
 */
function bleu(input: string, reference: string): number {
  const [a, b] = [words(input), words(reference)];
  const order = Math.min(ORDER, a.length);
  if (order === 0) return 0;
  let logs = 0;
  for (let n = 1; n <= order; n += 1) {
    const precision = overlap(nGrams(a, n), nGrams(b, n)) / (a.length - n + 1);
    logs += Math.log(precision) / order;
  }
  return Math.exp(logs + Math.min(0, 1 - b.length / a.length));
}

/** Wu et al. 2016: the smaller one of precision and recall of all n-grams of 1 to 4 words. */
function gleu(input: string, reference: string): number {
  const [a, b] = [words(input), words(reference)];
  let [matches, ofInput, ofReference] = [0, 0, 0];
  for (let n = 1; n <= ORDER; n += 1) {
    matches += overlap(nGrams(a, n), nGrams(b, n));
    ofInput += Math.max(0, a.length - n + 1);
    ofReference += Math.max(0, b.length - n + 1);
  }
  return matches === 0 ? 0 : matches / Math.max(ofInput, ofReference);
}

/** Lin 2004: F1 of the n-grams. */
function rouge(input: string, reference: string, n: number): number {
  const [a, b] = [plainWords(input), plainWords(reference)];
  const matches = overlap(nGrams(a, n), nGrams(b, n));
  return f1(matches, Math.max(0, a.length - n + 1), Math.max(0, b.length - n + 1));
}

/** Lin 2004: F1 of the longest common subsequence of words. */
function rougeL(input: string, reference: string): number {
  const [a, b] = [plainWords(input), plainWords(reference)];
  return f1(commonLength(a, b), a.length, b.length);
}

function f1(matches: number, ofInput: number, ofReference: number): number {
  return matches === 0 ? 0 : (2 * matches) / (ofInput + ofReference);
}
