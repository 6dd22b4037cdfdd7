/**
 * The `bytes` tokenizer: token = byte, written as little-endian uint16, so that training reads every tokenizer's output
 * the same way.
 */
export const BYTES_PER_TOKEN = 2;

/** (n) bytes → (2n) bytes of tokens. */
export function bytesToTokens(chunk: Uint8Array): Uint8Array {
  const tokens = new Uint8Array(chunk.length * BYTES_PER_TOKEN);
  // The upper byte of each token stays 0; the order of bytes is ours, not the machine's.
  for (let i = 0; i < chunk.length; i++) tokens[i * BYTES_PER_TOKEN] = chunk[i] as number;
  return tokens;
}
