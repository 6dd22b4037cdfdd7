/** A file that is read by ranges: it may be larger than memory. */
export interface ByteSource {
  /** For messages. */
  readonly name: string;
  readonly bytes: number;
  read(begin: number, end: number): Promise<Buffer>;
  stream(begin: number, end: number): Promise<AsyncIterable<Uint8Array>>;
}

/** Longest range that is asked for at once. */
const PIECE_BYTES = 4 * 1024 * 1024;

/** A file of which ranges can be asked for, and nothing else. */
export function rangeSource(name: string, bytes: number, read: ByteSource['read']): ByteSource {
  const pieces = async function* (begin: number, end: number) {
    for (let at = begin; at < end; at += PIECE_BYTES) yield await read(at, Math.min(end, at + PIECE_BYTES));
  };
  return { name, bytes, read, stream: async (begin, end) => pieces(begin, end) };
}
