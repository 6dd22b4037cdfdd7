/** Returns the first `bytes` bytes of `into` if it is long enough, else new memory. */
export function memoryFor(bytes: number, into: Buffer | undefined): Buffer {
  return into !== undefined && into.length >= bytes ? into.subarray(0, bytes) : Buffer.allocUnsafeSlow(bytes);
}

/** Collects a stream in the given memory. */
export async function gather(pieces: AsyncIterable<Uint8Array>, memory: Buffer): Promise<Buffer> {
  let length = 0;
  for await (const piece of pieces) {
    memory.set(piece, length);
    length += piece.length;
  }
  return memory.subarray(0, length);
}

/** Collects a stream of unknown length. */
export async function concat(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const piece of pieces) chunks.push(piece);
  return Buffer.concat(chunks);
}
