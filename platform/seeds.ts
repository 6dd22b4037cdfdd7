import { createHash } from 'node:crypto';

const SEED_BITS = 53;

/**
 * Maps integers to seeds. Numbers below 2^53 in magnitude keep their distances: no two of them within 2^53 have one
 * seed.
 */
export function seedOf(number: bigint): number {
  return Number(BigInt.asUintN(SEED_BITS, number));
}

/** Returns the seed of one of many streams. Streams of other seeds or indices are independent. */
export function mixedSeed(seed: number, index: number): number {
  return seedOf(createHash('sha256').update(`${seed} ${index}`).digest().readBigUInt64BE());
}
