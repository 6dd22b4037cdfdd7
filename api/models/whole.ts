import type { Hash } from 'node:crypto';

/**
 * All pieces in memory of its own, which a thread can take over. They are put in their places as they come: to join them at the end would
 * hold up the server while tens of megabytes are copied.
 * @param bytes how many there will be, or more
 */
export async function wholeOf(
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
