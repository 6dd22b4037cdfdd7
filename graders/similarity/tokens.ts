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
/** Elements of a block, whose masks take half a mebibyte at most, however many elements are distinct. */
const BLOCK = 64 * BITS;

/**
 * Length of the longest common subsequence (Hyyrö 2004): a row of the table is a bit vector over `a`, whose zeros are
 * the increments, and each element of `b` is one addition. Blocks of `a` follow each other; each element of `b` carries
 * its addition to the next block.
 */
export function commonLength(a: readonly string[], b: readonly string[]): number {
  const ids = new Map<string, number>();
  const idOf = (element: string) => ids.get(element) ?? ids.set(element, ids.size).size - 1;
  const ofA = Int32Array.from(a, idOf);
  const ofB = Int32Array.from(
    b.filter((element) => ids.has(element)),
    idOf,
  );
  const carries = new Uint8Array(ofB.length);
  /** Mask of each element in the block, from 1; 0 is the empty one. */
  const places = new Uint32Array(ids.size);
  const blockLength = Math.min(a.length, BLOCK);
  const numWords = Math.ceil(blockLength / BITS);
  const masks = new Uint32Array((blockLength + 1) * numWords);
  let length = 0;
  for (let begin = 0; begin < ofA.length; begin += BLOCK) {
    const block = ofA.subarray(begin, begin + BLOCK);
    masks.fill(0);
    let numMasks = 0;
    for (const [index, id] of block.entries()) {
      if (places[id] === 0) places[id] = ++numMasks;
      const word = (places[id] as number) * numWords + (index >>> 5);
      masks[word] = (masks[word] as number) | (1 << (index & 31));
    }
    const row = rowOf(ofB, { places, masks, numWords, carries });
    for (const [index, id] of block.entries()) {
      if (((row[index >>> 5] as number) & (1 << (index & 31))) === 0) length += 1;
      places[id] = 0;
    }
  }
  return length;
}

interface Block {
  places: Uint32Array;
  masks: Uint32Array;
  /** Words of bits of a mask. */
  numWords: number;
  /** Carry of each element of `b` into the block; its carry out afterwards. */
  carries: Uint8Array;
}

/** Last row of a block. */
function rowOf(b: Int32Array, { places, masks, numWords, carries }: Block): Uint32Array {
  const row = new Uint32Array(numWords).fill(0xffffffff);
  for (let at = 0; at < b.length; at += 1) {
    const place = places[b[at] as number] as number;
    let carry = carries[at] as number;
    if (place === 0 && carry === 0) continue;
    const mask = place * numWords;
    for (let word = 0; word < numWords; word += 1) {
      const before = row[word] as number;
      const found = (before & (masks[mask + word] as number)) >>> 0;
      const sum = before + found + carry;
      carry = sum > 0xffffffff ? 1 : 0;
      row[word] = sum | (before & ~found);
    }
    carries[at] = carry;
  }
  return row;
}
