import { randomBytes } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import { crc32c } from '@node-rs/crc32';
import t, { type Test } from 'tap';
import { CHUNK_BYTES, hexCrc, type Manifest } from '../../formats/checkpoint/manifest.js';
import { ChunkChecksums } from '../../formats/checkpoint/verify.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { verifyLoadedRanges } from './verify-load.js';

/** Two chunks and a partial one, with a header that no rank reads. */
const BYTES = 2 * CHUNK_BYTES + 1000;
const HEADER = 96;

async function setup(t: Test) {
  const shard = randomBytes(BYTES);
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  await objects.put('dir/shard', shard);
  const chunks = new ChunkChecksums();
  chunks.add(shard);
  const manifest = { shards: [{ file: 'shard', bytes: BYTES, crc32c: chunks.finish() }] } as Manifest;
  /** Returns the report of a rank that read bytes [begin, end) of `from`. */
  const range = (begin: number, end: number, from: Buffer = shard) => {
    return { file: 'shard', begin, end, crc32c: hexCrc(crc32c(from.subarray(begin, end))) };
  };
  return { shard, objects, manifest, range };
}

const BORDERS = [HEADER, 5000, 1_000_000, CHUNK_BYTES, CHUNK_BYTES + 4, 2 * CHUNK_BYTES, BYTES];

t.test('ranges of several ranks combine to the checksums, in any order', async (t) => {
  const { objects, manifest, range } = await setup(t);
  const ranges = BORDERS.slice(1).map((end, i) => range(BORDERS[i]!, end));
  await t.resolves(verifyLoadedRanges(objects, 'dir', manifest.shards, ranges.reverse()));
});

t.test('bytes that no rank read are read here', async (t) => {
  const { objects, manifest, range } = await setup(t);
  await t.resolves(
    verifyLoadedRanges(objects, 'dir', manifest.shards, [range(5000, 6000), range(2 * CHUNK_BYTES, BYTES)]),
  );
  await t.resolves(verifyLoadedRanges(objects, 'dir', manifest.shards, []));
});

t.test('the rest of a partly read chunk is checked; unread chunks are skipped', async (t) => {
  const { shard, objects, manifest, range } = await setup(t);
  const damaged = Buffer.from(shard);
  damaged[CHUNK_BYTES + 5000]! ^= 1;
  await objects.put('dir/shard', damaged);
  const elsewhere = [range(HEADER, 5000), range(2 * CHUNK_BYTES, BYTES)];
  await t.resolves(verifyLoadedRanges(objects, 'dir', manifest.shards, elsewhere));
  const beside = [...elsewhere, range(CHUNK_BYTES, CHUNK_BYTES + 4000)];
  await t.rejects(verifyLoadedRanges(objects, 'dir', manifest.shards, beside), {
    code: 'shard_corrupt',
    message: /chunk 1/,
  });
});

t.test('a rank that received other bytes is detected although the stored ones are correct', async (t) => {
  const { shard, objects, manifest, range } = await setup(t);
  const other = Buffer.from(shard);
  other[CHUNK_BYTES + 2]! ^= 1;
  const ranges = BORDERS.slice(1).map((end, i) => range(BORDERS[i]!, end, other));
  await t.rejects(verifyLoadedRanges(objects, 'dir', manifest.shards, ranges), {
    code: 'shard_corrupt',
    message: /chunk 1/,
  });
});

t.test('overlapping ranges and ranges across chunks are refused', async (t) => {
  const { objects, manifest, range } = await setup(t);
  await t.rejects(
    verifyLoadedRanges(objects, 'dir', manifest.shards, [range(HEADER, 5000), range(4000, 6000)]),
    /do not continue/,
  );
  await t.rejects(
    verifyLoadedRanges(objects, 'dir', manifest.shards, [range(HEADER, CHUNK_BYTES + 4)]),
    /do not continue/,
  );
});
