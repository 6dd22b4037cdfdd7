/**
 * CRC32C of a concatenation from the CRCs of its parts, without their bytes. Several ranks may each read a part of one
 * checksum chunk, so every byte is verified although each is read only once.
 *
 * A CRC is a polynomial over GF(2) modulo P, bit-reflected: x^0 is the highest bit. Appending n bytes multiplies the
 * preceding polynomial by x^(8n); the CRC of the appended bytes is added: crc(A‖B) = crc(A) · x^(8·|B|) + crc(B).
 */

/** Castagnoli polynomial without its leading term, reflected. */
const POLYNOMIAL = 0x82f63b78;
const ONE = 0x80000000;

/** Entry k is x^(2^k) mod P. */
const POWERS = powersOfTwo();

/** Returns the CRC of A‖B. @param lengthB number of bytes that `crc_b` covers */
export function combineCrc32c(crcA: number, crcB: number, lengthB: number): number {
  return (multiply(shiftBy(lengthB), crcA) ^ crcB) >>> 0;
}

/** Returns x^(8 · bytes) mod P, from the binary digits of the exponent. */
function shiftBy(bytes: number): number {
  let factor = ONE;
  let power = 3;
  for (let rest = bytes; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) factor = multiply(POWERS[power] ?? 0, factor);
    power++;
  }
  return factor;
}

function multiply(a: number, b: number): number {
  let product = 0;
  let shifted = b;
  for (let bit = 31; bit >= 0; bit--) {
    if ((a >>> bit) & 1) product ^= shifted;
    shifted = shifted & 1 ? (shifted >>> 1) ^ POLYNOMIAL : shifted >>> 1;
  }
  return product >>> 0;
}

function powersOfTwo(): number[] {
  const powers = [ONE >>> 1];
  // No object has 2^48 bytes.
  for (let k = 1; k < 52; k++) {
    const half = powers[k - 1] ?? 0;
    powers.push(multiply(half, half));
  }
  return powers;
}
