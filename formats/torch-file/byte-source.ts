/** File that is read by ranges, because it may be larger than memory. */
export interface ByteSource {
  /** Name in messages. */
  readonly name: string;
  readonly bytes: number;
  read(begin: number, end: number): Promise<Buffer>;
  stream(begin: number, end: number): Promise<AsyncIterable<Uint8Array>>;
}

/** Longest requested range. */
const PIECE_BYTES = 4 * 1024 * 1024;

/** Creates a source from a function that reads ranges. */
export function rangeSource(name: string, bytes: number, read: ByteSource['read']): ByteSource {
  const pieces = async function* (begin: number, end: number) {
    for (let at = begin; at < end; at += PIECE_BYTES) yield await read(at, Math.min(end, at + PIECE_BYTES));
  };
  return { name, bytes, read, stream: async (begin, end) => pieces(begin, end) };
}
