/** Compressed content, recognized by its first bytes: neither begins UTF-8 or a token file. */
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { programPath } from '../../../platform/process/programs.js';
import { StreamThread } from '../../../platform/threads/stream-thread.js';
import { cannotUnpack } from './errors.js';
import { peek } from './peek.js';

const zstdThread = new StreamThread(() => programPath('api/datasets/unpack/zstd-thread-main'));

type Compression = 'gzip' | 'zstd';

const FORMATS: Readonly<
  Record<Compression, { magic: Buffer; unpack(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> }>
> = {
  gzip: { magic: Buffer.from([0x1f, 0x8b]), unpack: gunzip },
  zstd: { magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), unpack: (body) => zstdThread.transform(body) },
};
/** Texts become at most some 20 times smaller, so more is a decompression bomb. */
const MAX_RATIO = 200;
/** Short contents may be as repetitive as they are. */
const FREE_BYTES = 64 * 1024 * 1024;

/**
 * Unpacks a body if it is compressed.
 * @throws (the iterator too) ZerofleetError `dataset_compression_invalid`; errors of the body
 */
export async function unpacked(
  given: AsyncIterable<Uint8Array>,
): Promise<{ body: AsyncIterable<Uint8Array>; is_compressed: boolean }> {
  const { head, body } = await peek(given, isRecognizable);
  for (const [name, { magic, unpack }] of Object.entries(FORMATS)) {
    if (!head.subarray(0, magic.length).equals(magic)) continue;
    return { body: withoutBombs(name as Compression, body, unpack), is_compressed: true };
  }
  return { body, is_compressed: false };
}

/** A short body is not waited for: an invalid one is answered while the client is still sending. */
function isRecognizable(head: Buffer): boolean {
  const maybe = Object.values(FORMATS).filter(({ magic }) => {
    const shared = Math.min(head.length, magic.length);
    return head.subarray(0, shared).equals(magic.subarray(0, shared));
  });
  return maybe.every(({ magic }) => head.length >= magic.length);
}

async function* withoutBombs(
  format: Compression,
  body: AsyncIterable<Uint8Array>,
  unpack: (body: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let packedBytes = 0;
  let bytes = 0;
  const counted = async function* () {
    for await (const piece of body) {
      packedBytes += piece.length;
      yield piece;
    }
  };
  for await (const piece of unpack(counted())) {
    bytes += piece.length;
    if (bytes > FREE_BYTES + MAX_RATIO * packedBytes)
      throw cannotUnpack(
        format,
        `it unpacks to more than ${MAX_RATIO} times its size; send such content without compression`,
      );
    yield piece;
  }
}

async function* gunzip(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const stream = createGunzip({ chunkSize: 64 * 1024 });
  // The reader of the stream receives the errors.
  pipeline(Readable.from(body, { objectMode: false }), stream, () => undefined);
  try {
    yield* stream;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw code?.startsWith('Z_') ? cannotUnpack('gzip', message) : error;
  }
}
