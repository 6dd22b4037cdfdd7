const MODULUS = 2n ** 128n;

/** The state digest: the sum of the ranks' shares (32 hexadecimal digits each) modulo 2^128. */
export function sumDigests(parts: readonly string[]): string {
  const sum = parts.reduce((total, part) => total + BigInt(`0x${part}`), 0n);
  return (sum % MODULUS).toString(16).padStart(32, '0');
}
