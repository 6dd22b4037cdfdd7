import type { ByteSource } from '../torch-file/byte-source.js';

/** In-memory file that is read in short pieces, so that records span their borders. */
export function memorySource(content: Buffer, name = 'test.pt', pieceBytes = 37): ByteSource {
  return {
    name,
    bytes: content.length,
    read: async (begin, end) => content.subarray(begin, end),
    stream: async (begin, end) =>
      (async function* () {
        for (let at = begin; at < end; at += pieceBytes)
          yield content.subarray(at, Math.min(end, at + pieceBytes));
      })(),
  };
}

export async function collect(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of pieces) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}
