import { randomBytes } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import { crc32c } from '@node-rs/crc32';
import t, { type Test } from 'tap';
import { CHUNK_BYTES, hexCrc, type Manifest } from '../../platform/checkpoint/manifest.js';
import { ChunkChecksums } from '../../platform/checkpoint/verify.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { verifyLoadedRanges } from './verify-load.js';

/** Two chunks and a bit, with a header that no rank reads. */
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
  /** What a rank reports that read bytes [begin, end) of `from`. */
  const range = (begin: number, end: number, from: Buffer = shard) => {
    return { file: 'shard', begin, end, crc32c: hexCrc(crc32c(from.subarray(begin, end))) };
  };
  return { shard, objects, manifest, range };
}

const BORDERS = [HEADER, 5000, 1_000_000, CHUNK_BYTES, CHUNK_BYTES + 4, 2 * CHUNK_BYTES, BYTES];

t.test('ranges of several ranks fold to the checksums, in any order', async (t) => {
  const { objects, manifest, range } = await setup(t);
  const ranges = BORDERS.slice(1).map((end, i) => range(BORDERS[i]!, end));
  await t.resolves(verifyLoadedRanges(objects, 'dir', manifest.shards, ranges.reverse()));
});

t.test('what no rank read is read here', async (t) => {
  const { objects, manifest, range } = await setup(t);
  await t.resolves(
    verifyLoadedRanges(objects, 'dir', manifest.shards, [range(5000, 6000), range(2 * CHUNK_BYTES, BYTES)]),
  );
  await t.resolves(verifyLoadedRanges(objects, 'dir', manifest.shards, []));
});

t.test('of a chunk of which somebody read a part the rest is checked, of the others nothing', async (t) => {
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

t.test('a rank that got other bytes is found, though the stored ones are right', async (t) => {
  const { shard, objects, manifest, range } = await setup(t);
  const other = Buffer.from(shard);
  other[CHUNK_BYTES + 2]! ^= 1;
  const ranges = BORDERS.slice(1).map((end, i) => range(BORDERS[i]!, end, other));
  await t.rejects(verifyLoadedRanges(objects, 'dir', manifest.shards, ranges), {
    code: 'shard_corrupt',
    message: /chunk 1/,
  });
});

t.test('a range that two ranks read, or that crosses chunks, is a fault of the plan', async (t) => {
  const { objects, manifest, range } = await setup(t);
  await t.rejects(
    verifyLoadedRanges(objects, 'dir', manifest.shards, [range(HEADER, 5000), range(4000, 6000)]),
    /do not go on/,
  );
  await t.rejects(
    verifyLoadedRanges(objects, 'dir', manifest.shards, [range(HEADER, CHUNK_BYTES + 4)]),
    /do not go on/,
  );
});
