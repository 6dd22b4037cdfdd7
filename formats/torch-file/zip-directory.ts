/**
 * Strict reader of a zip file's central directory as written by `torch.save`.
 *
 * General zip libraries search for the directory, ignore unknown parts, and open one entry at a time. Here no
 * byte may be unaccounted for: every byte of the file belongs to one entry or to the directory. Nothing is
 * compressed, and an entry has a known offset, because ranks read tensors from there. That takes less code
 * than a library's wrapper would.
 */
import type { ByteSource } from './byte-source.js';
import { malformed, shown } from './errors.js';
import {
  CENTRAL_HEADER,
  END_OF_DIRECTORY,
  END64,
  END64_LOCATOR,
  EXTRA_ZIP64,
  FLAG_DESCRIPTOR,
  FLAG_UTF8,
  IN_ZIP64_16,
  IN_ZIP64_32,
  readSize,
} from './zip-records.js';

/** Entry as described by the directory. */
export interface ZipEntry {
  name: string;
  /** Offset of its local header. */
  offset: number;
  /** Length of its data. */
  bytes: number;
  crc32: number;
  /** True if a data descriptor follows the data. */
  descriptor: boolean;
}

interface ZipDirectory {
  /** In the order of the file. */
  entries: ZipEntry[];
  /** End of the entries and begin of the directory. */
  begin: number;
}

/** A checkpoint of a model in one file has an entry for each tensor. */
const MAX_ENTRIES = 250_000;
const MAX_DIRECTORY_BYTES = 64 * 1024 * 1024;
const MAX_NAME_BYTES = 1024;

/** @throws ZerofleetError `torch_file_invalid`; errors of the source */
export async function readZipDirectory(source: ByteSource): Promise<ZipDirectory> {
  const { name: file, bytes } = source;
  const { count, begin, end } = await findDirectory(source);
  if (count === 0) throw malformed(file, 'it is an archive without entries');
  if (count > MAX_ENTRIES || end - begin > MAX_DIRECTORY_BYTES)
    throw malformed(file, `declares ${count} entries; the maximum is ${MAX_ENTRIES}`);
  if (begin > end || end > bytes) throw malformed(file, 'its directory lies outside of the file');
  const directory = await source.read(begin, end);
  const entries: ZipEntry[] = [];
  const names = new Set<string>();
  let at = 0;
  for (let i = 0; i < count; i++) {
    const { entry, next } = parseEntry(directory, at, file);
    if (names.has(entry.name)) throw malformed(file, `has the entry ${shown(entry.name)} twice`);
    names.add(entry.name);
    entries.push(entry);
    at = next;
  }
  if (at !== directory.length) throw malformed(file, 'its directory has bytes that belong to no entry');
  entries.sort((a, b) => a.offset - b.offset);
  return { entries, begin };
}

interface DirectoryLocation {
  count: number;
  begin: number;
  end: number;
}

/**
 * Finds the directory, which must end where the end records of the file begin; these must end with the file.
 */
async function findDirectory(source: ByteSource): Promise<DirectoryLocation> {
  const { name: file, bytes } = source;
  const tailBytes = Math.min(bytes, END_OF_DIRECTORY.bytes + END64_LOCATOR.bytes + END64.bytes);
  if (tailBytes < END_OF_DIRECTORY.bytes)
    throw malformed(file, `it has only ${bytes} bytes, too few for a file of torch.save`);
  const tail = await source.read(bytes - tailBytes, bytes);
  const end = tail.subarray(tail.length - END_OF_DIRECTORY.bytes);
  if (end.readUInt32LE(0) !== END_OF_DIRECTORY.signature || end.readUInt16LE(20) !== 0)
    throw malformed(
      file,
      'does not end as a zip file does; is it whole, and was it written by torch.save (1.6 or later)?',
    );
  const [count, size, begin] = [end.readUInt16LE(10), end.readUInt32LE(12), end.readUInt32LE(16)];
  if (end.readUInt32LE(4) !== 0 || end.readUInt16LE(8) !== count)
    throw malformed(file, 'is a part of an archive of several files');
  const large = findZip64(source, tail);
  if (large === null) {
    const location = { count, begin, end: bytes - END_OF_DIRECTORY.bytes };
    if (begin + size !== location.end) throw malformed(file, 'its directory is not at its declared offset');
    return location;
  }
  const differs = (short: number, mark: number, long: number) => short !== mark && short !== long;
  if (
    differs(count, IN_ZIP64_16, large.count) ||
    differs(size, IN_ZIP64_32, large.end - large.begin) ||
    differs(begin, IN_ZIP64_32, large.begin)
  )
    throw malformed(file, 'its two descriptions of the directory differ');
  return large;
}

/** Reads the directory's location from the zip64 records before the end record; null when there are none. */
function findZip64({ name: file, bytes }: ByteSource, tail: Buffer): DirectoryLocation | null {
  if (tail.length < END_OF_DIRECTORY.bytes + END64_LOCATOR.bytes + END64.bytes) return null;
  const locator = tail.subarray(END64.bytes);
  if (locator.readUInt32LE(0) !== END64_LOCATOR.signature) return null;
  const end = bytes - tail.length;
  const fail = () => malformed(file, 'its zip64 records are not at their declared offset');
  if (tail.readUInt32LE(0) !== END64.signature || readSize(locator, 8) !== end) throw fail();
  const counts = [readSize(tail, 24), readSize(tail, 32)] as const;
  const [size, begin] = [readSize(tail, 40), readSize(tail, 48)];
  if (readSize(tail, 4) !== END64.bytes - 12 || tail.readBigUInt64LE(16) !== 0n) throw fail();
  const [count] = counts;
  if (count === null || count !== counts[1] || size === null || begin === null) throw fail();
  if (begin + size !== end) throw fail();
  return { count, begin, end };
}

function parseEntry(directory: Buffer, at: number, file: string): { entry: ZipEntry; next: number } {
  const header = directory.subarray(at, at + CENTRAL_HEADER.bytes);
  if (header.length < CENTRAL_HEADER.bytes || header.readUInt32LE(0) !== CENTRAL_HEADER.signature)
    throw malformed(file, 'its directory ends early');
  const [nameBytes, extraBytes] = [header.readUInt16LE(28), header.readUInt16LE(30)];
  const extraAt = at + CENTRAL_HEADER.bytes + nameBytes;
  const next = extraAt + extraBytes;
  if (
    next > directory.length ||
    nameBytes === 0 ||
    nameBytes > MAX_NAME_BYTES ||
    header.readUInt16LE(32) !== 0
  )
    throw malformed(file, 'its directory has an entry with an impossible name');
  const name = decodeName(directory.subarray(at + CENTRAL_HEADER.bytes, extraAt), file);
  const fail = (problem: string) => malformed(file, `entry ${shown(name)} ${problem}`);
  const flags = header.readUInt16LE(8);
  if (header.readUInt16LE(10) !== 0) throw fail('is compressed; torch.save stores data as it is');
  if ((flags & ~(FLAG_DESCRIPTOR | FLAG_UTF8)) !== 0) throw fail('is encrypted or of an unknown kind');
  const wide = zip64Fields(directory.subarray(extraAt, next));
  const field = (offset: number) => {
    const value = header.readUInt32LE(offset);
    return value === IN_ZIP64_32 ? wide() : value;
  };
  // In the order of the fields in the zip64 record.
  const [bytes, stored, offset] = [field(24), field(20), field(42)];
  if (bytes === null || stored === null || offset === null) throw fail('has no size');
  if (bytes !== stored) throw fail('has two sizes');
  const entry = {
    name,
    offset,
    bytes,
    crc32: header.readUInt32LE(16),
    descriptor: (flags & FLAG_DESCRIPTOR) !== 0,
  };
  return { entry, next };
}

function decodeName(bytes: Buffer, file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw malformed(file, 'has an entry whose name is not UTF-8');
  }
}

/** Yields the 64-bit fields of an entry; null after the last. */
function zip64Fields(extra: Buffer): () => number | null {
  let fields: Buffer = Buffer.alloc(0);
  for (let at = 0; at + 4 <= extra.length; ) {
    const end = at + 4 + extra.readUInt16LE(at + 2);
    if (extra.readUInt16LE(at) === EXTRA_ZIP64) fields = extra.subarray(at + 4, end);
    at = end;
  }
  let at = 0;
  return () => {
    if (at + 8 > fields.length) return null;
    at += 8;
    return readSize(fields, at - 8);
  };
}
