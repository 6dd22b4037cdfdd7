import { crc32 } from '@node-rs/crc32';
import {
  CENTRAL_HEADER,
  DESCRIPTOR_BYTES,
  DESCRIPTOR_SIGNATURE,
  DESCRIPTOR64_BYTES,
  END_OF_DIRECTORY,
  END64,
  END64_LOCATOR,
  EXTRA_PADDING,
  EXTRA_ZIP64,
  FLAG_DESCRIPTOR,
  FLAG_UTF8,
  IN_ZIP64_16,
  IN_ZIP64_32,
  LOCAL_HEADER,
} from './zip-records.js';

/** Entry to write; its content comes in pieces and must have exactly `bytes` bytes. */
export interface NewEntry {
  name: string;
  bytes: number;
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

/** PyTorch maps storages into memory; they begin at a multiple of this. */
const ALIGNMENT = 64;
const FLAGS = FLAG_DESCRIPTOR | FLAG_UTF8;

interface Written {
  name: Buffer;
  bytes: number;
  offset: number;
  crc: number;
}

/**
 * Writes an archive as `torch.save` does: nothing compressed, checksums after the data, every entry's data
 * aligned.
 */
export async function* zipArchive(entries: Iterable<NewEntry>): AsyncGenerator<Uint8Array> {
  const written: Written[] = [];
  let position = 0;
  for (const entry of entries) {
    const name = Buffer.from(entry.name);
    const offset = position;
    const header = localHeader(name, offset, entry.bytes);
    yield header;
    let crc = 0;
    let bytes = 0;
    for await (const piece of entry.content) {
      crc = crc32(piece, crc);
      bytes += piece.length;
      yield piece;
    }
    if (bytes !== entry.bytes) throw new Error(`${entry.name} has ${bytes} bytes instead of ${entry.bytes}`);
    const record = { name, bytes, offset, crc };
    const descriptor = dataDescriptor(record);
    yield descriptor;
    written.push(record);
    position += header.length + bytes + descriptor.length;
  }
  const directory = Buffer.concat(written.map(centralHeader));
  yield directory;
  yield endOfDirectory(written.length, directory.length, position);
}

function isLarge({ bytes, offset }: Pick<Written, 'bytes' | 'offset'>): boolean {
  return bytes >= IN_ZIP64_32 || offset >= IN_ZIP64_32;
}

/** Builds a local header. Its zip64 field tells streaming readers that the descriptor has 64-bit sizes. */
function localHeader(name: Buffer, offset: number, bytes: number): Buffer {
  const large = isLarge({ bytes, offset }) ? extraField(EXTRA_ZIP64, Buffer.alloc(16)) : Buffer.alloc(0);
  const before = offset + LOCAL_HEADER.bytes + name.length + large.length + 4;
  const padding = extraField(
    EXTRA_PADDING,
    Buffer.alloc((ALIGNMENT - (before % ALIGNMENT)) % ALIGNMENT, 'Z'),
  );
  const header = Buffer.alloc(LOCAL_HEADER.bytes);
  header.writeUInt32LE(LOCAL_HEADER.signature, 0);
  header.writeUInt16LE(large.length > 0 ? 45 : 20, 4);
  header.writeUInt16LE(FLAGS, 6);
  if (large.length > 0) {
    header.writeUInt32LE(IN_ZIP64_32, 18);
    header.writeUInt32LE(IN_ZIP64_32, 22);
  }
  header.writeUInt16LE(name.length, 26);
  header.writeUInt16LE(large.length + padding.length, 28);
  return Buffer.concat([header, name, large, padding]);
}

function dataDescriptor(record: Written): Buffer {
  const large = isLarge(record);
  const descriptor = Buffer.alloc(large ? DESCRIPTOR64_BYTES : DESCRIPTOR_BYTES);
  descriptor.writeUInt32LE(DESCRIPTOR_SIGNATURE, 0);
  descriptor.writeUInt32LE(record.crc, 4);
  for (const i of [0, 1]) {
    if (large) descriptor.writeBigUInt64LE(BigInt(record.bytes), 8 + 8 * i);
    else descriptor.writeUInt32LE(record.bytes, 8 + 4 * i);
  }
  return descriptor;
}

function centralHeader(record: Written): Buffer {
  const { name, bytes, offset, crc } = record;
  const large = isLarge(record);
  const fields = Buffer.alloc(24);
  for (const [i, value] of [bytes, bytes, offset].entries()) fields.writeBigUInt64LE(BigInt(value), 8 * i);
  const extra = large ? extraField(EXTRA_ZIP64, fields) : Buffer.alloc(0);
  const header = Buffer.alloc(CENTRAL_HEADER.bytes);
  header.writeUInt32LE(CENTRAL_HEADER.signature, 0);
  header.writeUInt16LE(large ? 45 : 20, 6);
  header.writeUInt16LE(FLAGS, 8);
  header.writeUInt32LE(crc, 16);
  header.writeUInt32LE(large ? IN_ZIP64_32 : bytes, 20);
  header.writeUInt32LE(large ? IN_ZIP64_32 : bytes, 24);
  header.writeUInt16LE(name.length, 28);
  header.writeUInt16LE(extra.length, 30);
  header.writeUInt32LE(large ? IN_ZIP64_32 : offset, 42);
  return Buffer.concat([header, name, extra]);
}

/** Builds the end records, always with zip64 records, as PyTorch does. */
function endOfDirectory(count: number, bytes: number, begin: number): Buffer {
  const large = Buffer.alloc(END64.bytes);
  large.writeUInt32LE(END64.signature, 0);
  large.writeBigUInt64LE(BigInt(END64.bytes - 12), 4);
  large.writeUInt16LE(45, 12);
  large.writeUInt16LE(45, 14);
  for (const [i, value] of [count, count, bytes, begin].entries())
    large.writeBigUInt64LE(BigInt(value), 24 + 8 * i);
  const locator = Buffer.alloc(END64_LOCATOR.bytes);
  locator.writeUInt32LE(END64_LOCATOR.signature, 0);
  locator.writeBigUInt64LE(BigInt(begin + bytes), 8);
  locator.writeUInt32LE(1, 16);
  const end = Buffer.alloc(END_OF_DIRECTORY.bytes);
  end.writeUInt32LE(END_OF_DIRECTORY.signature, 0);
  const short = Math.min(count, IN_ZIP64_16);
  end.writeUInt16LE(short, 8);
  end.writeUInt16LE(short, 10);
  end.writeUInt32LE(Math.min(bytes, IN_ZIP64_32), 12);
  end.writeUInt32LE(Math.min(begin, IN_ZIP64_32), 16);
  return Buffer.concat([large, locator, end]);
}

function extraField(id: number, content: Buffer): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt16LE(id, 0);
  head.writeUInt16LE(content.length, 2);
  return Buffer.concat([head, content]);
}
