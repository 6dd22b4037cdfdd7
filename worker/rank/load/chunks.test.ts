import { crc32c } from '@node-rs/crc32';
import fc from 'fast-check';
import t from 'tap';
import { CHUNK_BYTES, hexCrc } from '../../../formats/checkpoint/manifest.js';
import type { PlannedRead } from '../../../formats/checkpoint/read-plan.js';
import { BYTES_PER_ELEMENT } from '../../../formats/checkpoint/shard-contents.js';
import { planFetches, rangeChecksums } from './chunks.js';

/** Generates reads of random lengths in elements, with gaps before them, in one file or several. */
const reads = fc
  .array(
    fc.record({ gap: fc.nat(5), elements: fc.integer({ min: 1, max: 3_000_000 }), next: fc.boolean() }),
    {
      minLength: 1,
      maxLength: 12,
    },
  )
  .map((items) => {
    let file = 0;
    let at = 72;
    return items.map(({ gap, elements, next }, i): PlannedRead => {
      if (next) {
        file++;
        at = 72;
      }
      const byteBegin = at + gap * BYTES_PER_ELEMENT;
      at = byteBegin + elements * BYTES_PER_ELEMENT;
      return {
        file: `f${file}`,
        byte_begin: byteBegin,
        byte_end: at,
        state: 'master',
        param: `p${i}`,
        begin: 10 * i,
      };
    });
  });

const chunkOf = (byte: number) => Math.floor(byte / CHUNK_BYTES);

t.test('fetches hold the bytes of the reads, each once, within one chunk', async (t) => {
  fc.assert(
    fc.property(reads, (planned) => {
      const fetches = [...planFetches(planned)];
      for (const { file, begin, end, pieces } of fetches) {
        if (chunkOf(begin) !== chunkOf(end - 1)) return false;
        let at = begin;
        for (const piece of pieces) {
          if (piece.file !== file || piece.byte_begin !== at) return false;
          at = piece.byte_end;
        }
        if (at !== end) return false;
      }
      // Joined by parameter, the pieces equal the reads, in bytes and in elements.
      return planned.every((read) => {
        const pieces = fetches.flatMap((fetch) => fetch.pieces).filter(({ param }) => param === read.param);
        return (
          pieces[0]?.byte_begin === read.byte_begin &&
          pieces.at(-1)?.byte_end === read.byte_end &&
          pieces.every(
            (piece) => (piece.begin - read.begin) * BYTES_PER_ELEMENT === piece.byte_begin - read.byte_begin,
          )
        );
      });
    }),
  );
  t.pass('property holds');
});

t.test('adjacent reads inside a chunk are one request', async (t) => {
  const read = (byteBegin: number, byteEnd: number): PlannedRead => {
    return { file: 'f', byte_begin: byteBegin, byte_end: byteEnd, state: 'master', param: 'p', begin: 0 };
  };
  const bounds = [...planFetches([read(8, 100), read(100, 200), read(204, CHUNK_BYTES + 40)])];
  t.strictSame(
    bounds.map(({ begin, end }) => [begin, end]),
    [
      [8, 200],
      [204, CHUNK_BYTES],
      [CHUNK_BYTES, CHUNK_BYTES + 40],
    ],
  );
});

t.test('a fetch has one checksum per chunk', async (t) => {
  const bytes = Buffer.alloc(CHUNK_BYTES + 100, 'pattern');
  const begin = CHUNK_BYTES - 60;
  const end = 2 * CHUNK_BYTES + 40;
  const crcOf = (from: number, to: number) => hexCrc(crc32c(bytes.subarray(from - begin, to - begin)));
  const range = (from: number, to: number) => ({ file: 'f', begin: from, end: to, crc32c: crcOf(from, to) });
  t.strictSame(rangeChecksums({ file: 'f', begin, end, pieces: [] }, bytes), [
    range(begin, CHUNK_BYTES),
    range(CHUNK_BYTES, 2 * CHUNK_BYTES),
    range(2 * CHUNK_BYTES, end),
  ]);
  t.strictSame(rangeChecksums({ file: 'f', begin, end: begin + 60, pieces: [] }, bytes), [
    range(begin, CHUNK_BYTES),
  ]);
});
