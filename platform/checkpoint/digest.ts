const DIGITS = 32;
const MODULUS = 2n ** 128n;
const DIGEST = /^[0-9a-f]{32}$/;

/**
 * The state digest: the sum of the ranks' shares modulo 2^128. Addition needs no order, so it does not matter
 * how many ranks there are, nor who reports first.
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
