/** The first bytes of `into` when it has as many, else memory of their own. */
export function memoryFor(bytes: number, into: Buffer | undefined): Buffer {
  return into !== undefined && into.length >= bytes ? into.subarray(0, bytes) : Buffer.allocUnsafeSlow(bytes);
}

/** Everything that a stream brings, in the given memory. */
export async function gather(pieces: AsyncIterable<Uint8Array>, memory: Buffer): Promise<Buffer> {
  let held = 0;
  for await (const piece of pieces) {
    memory.set(piece, held);
    held += piece.length;
  }
  return memory.subarray(0, held);
}

/** Everything that a stream of unknown length brings. */
export async function concat(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const held: Uint8Array[] = [];
  for await (const piece of pieces) held.push(piece);
  return Buffer.concat(held);
}
