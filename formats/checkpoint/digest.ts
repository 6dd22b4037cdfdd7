const DIGITS = 32;
const MODULUS = 2n ** 128n;
const DIGEST = /^[0-9a-f]{32}$/;

/**
 * Returns the state digest: the sum of the ranks' shares modulo 2^128. Addition is commutative, so neither
 * the number of ranks nor the order of their reports matters.
 * @param parts 32 hexadecimal digits each
 */
export function sumDigests(parts: readonly string[]): string {
  let sum = 0n;
  for (const part of parts) {
    if (!DIGEST.test(part))
      throw new RangeError(`${JSON.stringify(part)} is not a digest of ${DIGITS} digits`);
    sum += BigInt(`0x${part}`);
  }
  return (sum % MODULUS).toString(16).padStart(DIGITS, '0');
}

/** Returns a digest in which one part was replaced by another. */
export function replaceInDigest(digest: string, part: string, by: string): string {
  const negative = (MODULUS - BigInt(`0x${part}`)) % MODULUS;
  return sumDigests([digest, negative.toString(16).padStart(DIGITS, '0'), by]);
}
