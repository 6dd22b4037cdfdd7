import type { StringCheckGrader } from '../contracts/index.js';

/** Compares two texts: 1 if the comparison holds, otherwise 0. */
export function checkStrings({
  operation,
  input,
  reference,
}: Pick<StringCheckGrader, 'operation' | 'input' | 'reference'>): number {
  return Number(COMPARISONS[operation](input, reference));
}

const COMPARISONS: Readonly<
  Record<StringCheckGrader['operation'], (input: string, reference: string) => boolean>
> = {
  eq: (input, reference) => input === reference,
  ne: (input, reference) => input !== reference,
  like: (input, reference) => input.includes(reference),
  ilike: (input, reference) => input.toLowerCase().includes(reference.toLowerCase()),
};
