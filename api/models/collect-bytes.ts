import type { Hash } from 'node:crypto';

/**
 * Collects all pieces in their own memory, which a thread can take over. Each piece is copied as it arrives: joining
 * tens of megabytes at the end would block the event loop.
 * @param bytes expected number of bytes, or more
 */
export async function collectBytes(
  content: AsyncIterable<Uint8Array>,
  bytes: number,
  hash?: Hash,
): Promise<Uint8Array<ArrayBuffer>> {
  const whole = new Uint8Array(bytes);
  let at = 0;
  for await (const piece of content) {
    whole.set(piece, at);
    hash?.update(piece);
    at += piece.length;
  }
  return at === bytes ? whole : whole.slice(0, at);
}
