import type { ObjectStore } from '../object-store/port.js';

/** A file that is read by ranges: it may be larger than memory. */
export interface ByteSource {
  /** For messages. */
  readonly name: string;
  readonly bytes: number;
  read(begin: number, end: number): Promise<Buffer>;
  stream(begin: number, end: number): Promise<AsyncIterable<Uint8Array>>;
}

export function objectSource(objects: ObjectStore, key: string, name: string, bytes: number): ByteSource {
  return {
    name,
    bytes,
    read: (begin, end) => objects.get(key, { begin, end }),
    stream: (begin, end) => objects.stream(key, { begin, end }),
  };
}
