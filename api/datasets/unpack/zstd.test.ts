/** Unpacking of Zstandard: contents of the program zstd (golden/make_golden_zstd.py), and damaged ones. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { collect } from '../../../formats/testing/byte-source.js';
import { unzstd } from './zstd.js';

interface Golden {
  bytes: number;
  sha256: string;
  packed: string;
}
const golden = JSON.parse(readFileSync('api/datasets/unpack/golden/zstd.json', 'utf8')) as Record<
  string,
  Golden
>;
const packed = (name: string) => Buffer.from(golden[name]?.packed ?? '', 'base64');

async function* inPieces(content: Buffer, bytes: number) {
  for (let at = 0; at < content.length; at += bytes) yield content.subarray(at, at + bytes);
}
const unpack = (content: Buffer, pieceBytes = 777) => collect(unzstd(inPieces(content, pieceBytes)));

for (const [name, { bytes, sha256 }] of Object.entries(golden))
  t.test(`a content ${name}`, async (t) => {
    for (const pieceBytes of [1, 1000, 1 << 20]) {
      const content = await unpack(packed(name), pieceBytes);
      t.equal(content.length, bytes);
      t.equal(createHash('sha256').update(content).digest('hex'), sha256);
    }
  });

t.test('a truncated frame is refused wherever it ends', async (t) => {
  const whole = packed('of twenty bytes');
  for (let bytes = 1; bytes < whole.length; bytes++)
    await t.rejects(unpack(whole.subarray(0, bytes)), {
      code: 'dataset_compression_invalid',
      message: /it ends in the middle of a frame/,
    });
});

t.test('a changed byte never gives another content', async (t) => {
  const whole = packed('of twenty bytes');
  const content = await unpack(whole);
  for (let at = 0; at < whole.length; at++) {
    const changed = Buffer.from(whole);
    changed[at] = (changed[at] as number) ^ 0x40;
    const found = await unpack(changed).catch((error: Error & { code?: string }) => error);
    if (Buffer.isBuffer(found)) t.same(found, content, `byte ${at}`);
    else t.equal(found.code, 'dataset_compression_invalid', `byte ${at}: ${found.message}`);
  }
});

const frame = (...bytes: number[]) => Buffer.from([0x28, 0xb5, 0x2f, 0xfd, ...bytes]);
const REFUSED: [string, Buffer, RegExp][] = [
  ['a window of 16 MiB', frame(0, 14 << 3), /a window of 16777216 bytes.*without --long and --ultra/],
  ['a content of 4 GiB in one window', frame(0xa0, 0, 0, 0, 0xff), /a window of 4278190080 bytes/],
  ['a dictionary', frame(1, 0, 7), /needs a dictionary/],
  ['a reserved flag', frame(8, 0), /a reserved flag/],
  ['a block of an unknown type', frame(0, 0, 7, 0, 0), /a block has an unknown type/],
  ['a block larger than its window', frame(0, 0, 1, 0x40, 0), /a block has 2048 bytes, and at most 1024/],
  ['a wrong size', frame(0x20, 3, 3, 0, 0, 7), /a frame has 0 bytes, and its header says 3/],
  ['something else after a frame', Buffer.concat([packed('empty'), Buffer.from('more')]), /something else/],
];
for (const [name, content, message] of REFUSED)
  t.test(`refused: ${name}`, (t) =>
    t.rejects(unpack(content), { code: 'dataset_compression_invalid', message }),
  );
