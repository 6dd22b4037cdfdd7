import { crc32 } from '@node-rs/crc32';
import type { ByteSource } from './byte-source.js';
import { malformed, shown } from './errors.js';
import { readZipDirectory, type ZipEntry } from './zip-directory.js';
import {
  DESCRIPTOR_BYTES,
  DESCRIPTOR_SIGNATURE,
  DESCRIPTOR64_BYTES,
  EXTRA_PADDING,
  EXTRA_ZIP64,
  LOCAL_HEADER,
  readSize,
} from './zip-records.js';

/** Entry whose checksum was verified. */
export interface ScannedEntry {
  name: string;
  /** Its data, in bytes of the file. */
  begin: number;
  end: number;
  /** Its data, if it was to be kept. */
  content: Buffer | null;
}

/**
 * Reads an archive once from its first to its last byte: entries must be contiguous, and each must match the
 * directory and its checksum.
 * @param keep returns the maximum of bytes to keep of an entry, by its name; a longer one is not kept
 * @throws ZerofleetError `torch_file_invalid`; errors of the source
 */
export async function scanZip(source: ByteSource, keep: (name: string) => number): Promise<ScannedEntry[]> {
  const { entries, begin } = await readZipDirectory(source);
  const cursor = new Cursor(source.name, await source.stream(0, begin));
  const scanned: ScannedEntry[] = [];
  try {
    for (const [i, entry] of entries.entries()) {
      const end = entries[i + 1]?.offset ?? begin;
      scanned.push(await scanEntry(cursor, entry, end, keep(entry.name)));
    }
  } finally {
    await cursor.close();
  }
  return scanned;
}

async function scanEntry(
  cursor: Cursor,
  entry: ZipEntry,
  end: number,
  keptBytes: number,
): Promise<ScannedEntry> {
  const fail = (problem: string) => malformed(cursor.file, `entry ${shown(entry.name)} ${problem}`);
  if (entry.offset !== cursor.position)
    throw fail(`begins at byte ${entry.offset}, not at ${cursor.position}`);
  const header = await cursor.take(LOCAL_HEADER.bytes);
  if (header.readUInt32LE(0) !== LOCAL_HEADER.signature) throw fail('has no header');
  const name = await cursor.take(header.readUInt16LE(26));
  checkExtra(await cursor.take(header.readUInt16LE(28)), fail);
  const begin = cursor.position;
  const rest = end - begin - entry.bytes;
  const hasDescriptor = (header.readUInt16LE(6) & 0x0008) !== 0;
  if (name.toString() !== entry.name || header.readUInt16LE(8) !== 0 || hasDescriptor !== entry.descriptor)
    throw fail('has contradictory descriptions');
  const fits = entry.descriptor ? rest === DESCRIPTOR_BYTES || rest === DESCRIPTOR64_BYTES : rest === 0;
  if (!fits) throw fail(`has ${entry.bytes} bytes, and ${rest} more before what comes next`);
  if (
    !entry.descriptor &&
    (header.readUInt32LE(14) !== entry.crc32 || header.readUInt32LE(22) !== entry.bytes)
  )
    throw fail('has contradictory descriptions');

  const kept: Uint8Array[] | null = entry.bytes <= keptBytes ? [] : null;
  let crc = 0;
  for await (const piece of cursor.pieces(entry.bytes)) {
    crc = crc32(piece, crc);
    kept?.push(Buffer.from(piece));
  }
  if (crc !== entry.crc32) throw fail('does not match its checksum');
  if (entry.descriptor) checkDescriptor(await cursor.take(rest), entry, fail);
  return { name: entry.name, begin, end: begin + entry.bytes, content: kept && Buffer.concat(kept) };
}

/** Allows only padding and sizes in the extra fields. */
function checkExtra(extra: Buffer, fail: (problem: string) => Error): void {
  for (let at = 0; at < extra.length; ) {
    const id = at + 4 <= extra.length ? extra.readUInt16LE(at) : null;
    if (id !== EXTRA_PADDING && id !== EXTRA_ZIP64) throw fail('has an extra field of an unknown kind');
    at += 4 + extra.readUInt16LE(at + 2);
    if (at > extra.length) throw fail('has an extra field that is longer than its space');
  }
}

function checkDescriptor(descriptor: Buffer, entry: ZipEntry, fail: (problem: string) => Error): void {
  const wide = descriptor.length === DESCRIPTOR64_BYTES;
  const sizes = wide
    ? [readSize(descriptor, 8), readSize(descriptor, 16)]
    : [descriptor.readUInt32LE(8), descriptor.readUInt32LE(12)];
  const right =
    descriptor.readUInt32LE(0) === DESCRIPTOR_SIGNATURE &&
    descriptor.readUInt32LE(4) === entry.crc32 &&
    sizes.every((size) => size === entry.bytes);
  if (!right) throw fail('has contradictory descriptions');
}

/** Reader of a stream in chunks of requested size; holds one piece of it. */
class Cursor {
  position = 0;
  private piece: Uint8Array = new Uint8Array(0);
  private readonly iterator: AsyncIterator<Uint8Array>;

  constructor(
    readonly file: string,
    stream: AsyncIterable<Uint8Array>,
  ) {
    this.iterator = stream[Symbol.asyncIterator]();
  }

  /** Reads exactly `bytes` bytes; for records, which are short. */
  async take(bytes: number): Promise<Buffer> {
    const { piece } = this;
    if (bytes <= piece.length) {
      this.piece = piece.subarray(bytes);
      this.position += bytes;
      return Buffer.from(piece.subarray(0, bytes));
    }
    const parts: Uint8Array[] = [];
    for await (const part of this.pieces(bytes)) parts.push(part);
    return Buffer.concat(parts);
  }

  async *pieces(bytes: number): AsyncGenerator<Uint8Array> {
    let left = bytes;
    while (left > 0) {
      if (this.piece.length === 0) this.piece = await this.next();
      const part = this.piece.subarray(0, left);
      this.piece = this.piece.subarray(part.length);
      this.position += part.length;
      left -= part.length;
      yield part;
    }
  }

  async close(): Promise<void> {
    await this.iterator.return?.();
  }

  private async next(): Promise<Uint8Array> {
    const { done, value } = await this.iterator.next();
    if (done) throw malformed(this.file, 'an entry reaches into the directory');
    return value;
  }
}
