const SEED_BITS = 53;

/**
 * Maps integers to seeds. Numbers below 2^53 in magnitude keep their distances: no two of them within 2^53 have one
 * seed.
 */
export function seedOf(number: bigint): number {
  return Number(BigInt.asUintN(SEED_BITS, number));
}
