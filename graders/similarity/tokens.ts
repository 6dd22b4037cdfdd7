/** Words and n-grams of texts, and their longest common subsequence. */

export function words(text: string): string[] {
  return text.split(/\s+/u).filter((word) => word !== '');
}

/** Lower-case runs of ASCII letters and digits, the words of ROUGE. */
export function plainWords(text: string): string[] {
  return text.toLowerCase().match(/[a-z0-9]+/g) ?? [];
}

/** Counts the sequences of n words. */
export function nGrams(tokens: readonly string[], n: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (let begin = 0; begin + n <= tokens.length; begin += 1) {
    const key = tokens.slice(begin, begin + n).join(' ');
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

/** Size of the intersection of two multisets. */
export function overlap(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const [key, count] of a) sum += Math.min(count, b.get(key) ?? 0);
  return sum;
}

const BITS = 32;

/**
 * Length of the longest common subsequence (Hyyrö 2004): a row of the table is a bit vector over `a`, whose zeros are
 * the increments, and each element of `b` is one addition.
 */
export function commonLength(a: readonly string[], b: readonly string[]): number {
  const numWords = Math.ceil(a.length / BITS);
  const places = new Map<string, Uint32Array>();
  for (const [index, element] of a.entries()) {
    const mask = places.get(element) ?? new Uint32Array(numWords);
    mask[index >>> 5] = (mask[index >>> 5] as number) | (1 << (index & 31));
    places.set(element, mask);
  }
  const row = new Uint32Array(numWords).fill(0xffffffff);
  for (const element of b) {
    const mask = places.get(element);
    if (mask === undefined) continue;
    let carry = 0;
    for (let word = 0; word < numWords; word += 1) {
      const before = row[word] as number;
      const found = (before & (mask[word] as number)) >>> 0;
      const sum = before + found + carry;
      carry = sum > 0xffffffff ? 1 : 0;
      row[word] = sum | (before & ~found);
    }
  }
  let length = 0;
  for (let index = 0; index < a.length; index += 1)
    if (((row[index >>> 5] as number) & (1 << (index & 31))) === 0) length += 1;
  return length;
}
