/** Comparisons of texts, by name. For long texts they run in threads with limits. */
import type { StringCheckGrader, TextSimilarityGrader } from '../../contracts/index.js';
import { METRICS } from './metrics.js';

export interface Texts {
  input: string;
  reference: string;
}

const COMPARISONS: Readonly<
  Record<StringCheckGrader['operation'], (input: string, reference: string) => boolean>
> = {
  eq: (input, reference) => input === reference,
  ne: (input, reference) => input !== reference,
  like: (input, reference) => input.includes(reference),
  ilike: (input, reference) => input.toLowerCase().includes(reference.toLowerCase()),
};

export const tasks = {
  /** 1 if the comparison holds, otherwise 0. */
  check: ({ operation, input, reference }: Texts & Pick<StringCheckGrader, 'operation'>): number =>
    Number(COMPARISONS[operation](input, reference)),
  similarity: ({
    metric,
    input,
    reference,
  }: Texts & { metric: TextSimilarityGrader['evaluation_metric'] }): number =>
    METRICS[metric](input, reference),
};
