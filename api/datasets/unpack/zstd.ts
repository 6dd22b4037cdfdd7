/**
 * Unpacks Zstandard (RFC 8878). A frame is parsed into its blocks here, because the library bounds neither the memory
 * of a window nor the output of a call, and checks no sum. The library decodes one block at a time, at most 128 KiB.
 */
import { Decompress } from 'fzstd';
import { createXXHash64 } from 'hash-wasm';
import { ByteReader } from './byte-reader.js';
import { cannotUnpack } from './errors.js';

const FRAME_MAGIC = 0xfd2fb528;
/** The lowest four bits are free. */
const SKIPPABLE_MAGIC = 0x184d2a50;
/** The RFC recommends that every decoder supports it; `zstd -19` needs no more. */
const MAX_WINDOW_BYTES = 8 * 1024 * 1024;
const MAX_BLOCK_BYTES = 128 * 1024;
const RUN_BLOCK = 1;
const RESERVED_BLOCK = 3;

/** Yields the content of all frames. @throws ZerofleetError `dataset_compression_invalid`; errors of the body */
export async function* unzstd(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const input = new ByteReader(body, () => invalid('it ends in the middle of a frame'));
  while (!(await input.hasEnded())) {
    const magic = await input.take(4);
    const number = view(magic).getUint32(0, true);
    if (number === FRAME_MAGIC) yield* unpackFrame(input, magic);
    else if ((number & ~0xf) >>> 0 === SKIPPABLE_MAGIC)
      await input.skip(view(await input.take(4)).getUint32(0, true));
    else throw invalid('after a frame comes something else');
  }
}

interface FrameHeader {
  bytes: Uint8Array;
  has_checksum: boolean;
  /** Size of the content; null if the frame does not have it. */
  size: number | null;
  max_block_bytes: number;
}

async function* unpackFrame(input: ByteReader, magic: Uint8Array): AsyncGenerator<Uint8Array> {
  const { bytes, has_checksum, size, max_block_bytes } = await readHeader(input, magic);
  const hash = await createXXHash64();
  let pieces: Uint8Array[] = [];
  const frame = new Decompress((piece) => pieces.push(piece));
  const decode = (part: Uint8Array, isLast = false): Uint8Array[] => {
    pieces = [];
    try {
      frame.push(part, isLast);
    } catch (error) {
      throw invalid(`a block cannot be decoded (${(error as Error).message})`);
    }
    return pieces.filter(({ length }) => length > 0);
  };
  decode(bytes);
  let unpacked = 0;
  for (let isLast = false; !isLast; ) {
    const block = await readBlock(input, max_block_bytes);
    isLast = block.is_last;
    const sum = isLast && has_checksum ? await input.take(4) : new Uint8Array(0);
    for (const piece of decode(Buffer.concat([block.bytes, sum]), isLast)) {
      // The library keeps no reference to the piece, and the receiver may take its memory.
      hash.update(piece);
      unpacked += piece.length;
      yield piece;
    }
    if (sum.length > 0 && view(sum).getUint32(0, true) !== view(hash.digest('binary')).getUint32(4))
      throw invalid('its content does not match its checksum');
  }
  if (size !== null && size !== unpacked)
    throw invalid(`a frame has ${unpacked} bytes, and its header says ${size}`);
}

async function readHeader(input: ByteReader, magic: Uint8Array): Promise<FrameHeader> {
  const descriptor = await input.take(1);
  const flags = descriptor[0] as number;
  const isSingle = (flags & 0x20) !== 0;
  const dictionaryBytes = [0, 1, 2, 4][flags & 3] as number;
  const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][flags >> 6] as number;
  if ((flags & 8) !== 0) throw invalid('a frame has a reserved flag');
  const rest = await input.take((isSingle ? 0 : 1) + dictionaryBytes + sizeBytes);
  if (
    rest
      .subarray(rest.length - sizeBytes - dictionaryBytes, rest.length - sizeBytes)
      .some((byte) => byte !== 0)
  )
    throw invalid('a frame needs a dictionary; compress it without one');
  const size = readSize(rest.subarray(rest.length - sizeBytes));
  const window = isSingle ? (size ?? 0) : windowOf(rest[0] as number);
  if (window > MAX_WINDOW_BYTES)
    throw invalid(
      `a frame needs a window of ${window} bytes, and at most ${MAX_WINDOW_BYTES} are possible; compress it without --long and --ultra`,
    );
  const maxBlockBytes = Math.min(window, MAX_BLOCK_BYTES);
  return {
    bytes: Buffer.concat([magic, descriptor, rest]),
    has_checksum: (flags & 4) !== 0,
    size,
    max_block_bytes: maxBlockBytes,
  };
}

function windowOf(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3));
  return base + (base / 8) * (descriptor & 7);
}

function readSize(bytes: Uint8Array): number | null {
  if (bytes.length === 0) return null;
  const size = bytes.reduceRight((total, byte) => total * 256 + byte, 0);
  return bytes.length === 2 ? size + 256 : size;
}

/** Reads a block with its header. */
async function readBlock(
  input: ByteReader,
  maxBytes: number,
): Promise<{ bytes: Uint8Array; is_last: boolean }> {
  const header = await input.take(3);
  const word = (header[0] as number) | ((header[1] as number) << 8) | ((header[2] as number) << 16);
  const type = (word >> 1) & 3;
  const size = word >> 3;
  if (type === RESERVED_BLOCK) throw invalid('a block has an unknown type');
  if (size > maxBytes) throw invalid(`a block has ${size} bytes, and at most ${maxBytes} are possible`);
  const content = await input.take(type === RUN_BLOCK ? 1 : size);
  return { bytes: Buffer.concat([header, content]), is_last: (word & 1) === 1 };
}

function view(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

function invalid(what: string): Error {
  return cannotUnpack('zstd', what);
}
