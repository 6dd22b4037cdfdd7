import { pathToFileURL } from 'node:url';
import { crc32c } from '@node-rs/crc32';
import t from 'tap';
import { openObjectStore } from '../../../platform/object-store/index.js';
import { pattern } from '../../../platform/testing/object-store-checks.js';
import { readFetches } from './read-fetches.js';

const ONCE = { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 };
const FILE_BYTES = 40_000;

t.test('every piece gets its bytes although memory is reused', async (t) => {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  const content = pattern(FILE_BYTES);
  await objects.put('dir/file', content);
  // Longer and shorter fetches alternate, two pieces each, more than there are lanes.
  const fetches = Array.from({ length: 40 }, (_, i) => {
    const begin = i * 1000;
    const middle = begin + 3 + i;
    const end = middle + (i % 3 === 0 ? 900 : 4);
    const piece = (byteBegin: number, byteEnd: number) => ({
      file: 'file',
      byte_begin: byteBegin,
      byte_end: byteEnd,
      begin: byteBegin,
    });
    return { file: 'file', begin, end, pieces: [piece(begin, middle), piece(middle, end)] };
  });
  const seen = new Map<number, Buffer>();
  const ranges = await readFetches(fetches, { objects, directory: 'dir', retry: ONCE }, (piece, bytes) =>
    seen.set(piece.begin, Buffer.from(bytes)),
  );
  const bytesOf = (begin: number, end: number) => content.subarray(begin, end);
  t.equal(seen.size, 80);
  for (const { pieces } of fetches) {
    for (const { byte_begin, byte_end } of pieces)
      t.same(seen.get(byte_begin), bytesOf(byte_begin, byte_end));
  }
  t.strictSame(
    ranges.sort((a, b) => a.begin - b.begin),
    fetches.map(({ file, begin, end }) => {
      const sum = crc32c(bytesOf(begin, end)).toString(16).padStart(8, '0');
      return { file, begin, end, crc32c: sum };
    }),
  );
});

t.test('an error of the store or of the callback ends the reading', async (t) => {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  await objects.put('dir/file', pattern(10));
  const fetch = { file: 'file', begin: 0, end: 11, pieces: [] };
  const source = { objects, directory: 'dir', retry: ONCE };
  await t.rejects(
    readFetches([fetch], source, () => undefined),
    { code: 'invalid_range' },
  );
  const pieces = [{ file: 'file', byte_begin: 0, byte_end: 10, begin: 0 }];
  const refuse = () => {
    throw new Error('refused');
  };
  await t.rejects(readFetches([{ ...fetch, end: 10, pieces }], source, refuse), { message: 'refused' });
});
