import { setImmediate as nextTurn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { collect } from '../../../formats/testing/byte-source.js';
import { unpacked } from './unpack.js';

async function* inPieces(content: Buffer, bytes = 100) {
  for (let at = 0; at < content.length; at += bytes) yield content.subarray(at, at + bytes);
}

async function unpack(content: Buffer, pieceBytes?: number) {
  const { body, is_compressed } = await unpacked(inPieces(content, pieceBytes));
  return { text: (await collect(body)).toString(), is_compressed };
}

const TEXT = 'to be or not to be, that is the question. '.repeat(100);

/** A zstd frame of runs of one byte, without its checksum. */
function zstdOfRuns(blocks: number, blockBytes = 128 * 1024): Buffer {
  const block = (isLast: number) => {
    const word = (blockBytes << 3) | (1 << 1) | isLast;
    return [word & 0xff, (word >> 8) & 0xff, word >> 16, 0x61];
  };
  const body = Array.from({ length: blocks }, (_, at) => block(at === blocks - 1 ? 1 : 0)).flat();
  return Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 11 << 3, ...body]);
}

t.test('content without compression passes', async (t) => {
  for (const text of ['', 'a', '(', TEXT])
    t.same(await unpack(Buffer.from(text), 1), { text, is_compressed: false });
});

t.test('gzip, also of several members', async (t) => {
  const packed = gzipSync(TEXT);
  for (const pieceBytes of [1, 100, 1e6])
    t.same(await unpack(packed, pieceBytes), { text: TEXT, is_compressed: true });
  t.same(await unpack(Buffer.concat([packed, gzipSync('more')])), {
    text: `${TEXT}more`,
    is_compressed: true,
  });
});

t.test('zstd, in a thread', async (t) => {
  const text = 'a'.repeat(3 * 1024);
  t.same(await unpack(zstdOfRuns(3, 1024), 1), { text, is_compressed: true });
  const all = await Promise.all(Array.from({ length: 5 }, () => unpack(zstdOfRuns(3, 1024))));
  t.ok(all.every((each) => each.text === text));
});

t.test('damaged content is refused', async (t) => {
  const packed = gzipSync(TEXT);
  const changed = Buffer.from(packed);
  changed[packed.length - 6] = (changed[packed.length - 6] as number) ^ 1;
  const invalid = (message: RegExp) => ({ code: 'dataset_compression_invalid', message });
  await t.rejects(unpack(packed.subarray(0, -3)), invalid(/not valid gzip: unexpected end of file/));
  await t.rejects(unpack(changed), invalid(/not valid gzip: incorrect data check/));
  await t.rejects(unpack(Buffer.concat([packed, Buffer.from('more')])), invalid(/not valid gzip/));
  await t.rejects(unpack(zstdOfRuns(3).subarray(0, -1)), invalid(/not valid zstd: it ends in the middle/));
});

t.test('decompression bombs are refused, and the rest of the body is not read', async (t) => {
  for (const bomb of [gzipSync(Buffer.alloc(160e6)), zstdOfRuns(1200)]) {
    let isLeft = false;
    const body = async function* () {
      try {
        yield bomb;
        yield* inPieces(Buffer.alloc(1000));
      } finally {
        isLeft = true;
      }
    };
    let bytes = 0;
    const read = async () => {
      for await (const piece of (await unpacked(body())).body) bytes += piece.length;
    };
    await t.rejects(read(), {
      code: 'dataset_compression_invalid',
      message: /it unpacks to more than 200 times its size; send such content without compression/,
    });
    // A stream is destroyed in the background.
    while (!isLeft) await nextTurn();
    t.ok(bytes < 64 * 1024 * 1024 + 200 * bomb.length + 1e6);
  }
});

t.test('errors of the body pass', async (t) => {
  for (const head of [Buffer.from('text'), gzipSync(TEXT).subarray(0, 50), zstdOfRuns(3).subarray(0, 14)]) {
    const body = async function* () {
      yield head;
      throw new Error('the connection ended');
    };
    await t.rejects(
      unpacked(body()).then(({ body }) => collect(body)),
      { message: 'the connection ended' },
    );
  }
});
