import { join } from 'node:path';
import t from 'tap';
import { openObjectStore } from '../../platform/object-store/index.js';
import { putTestCheckpoint } from '../testing/checkpoints.js';
import { CHUNK_BYTES } from './manifest.js';
import { ChunkChecksums, verifyShards } from './verify.js';

t.test('every kind of damage is detected and named', async (t) => {
  const objects = await openObjectStore(`file://${join(t.testdir({}), 'objects')}`, { create: true });
  // 3 states of 500,000 floats are 6 MB: two chunks in the one shard.
  const manifest = await putTestCheckpoint(objects, 'c', { numels: [500_000], ranks: 1 });
  await verifyShards(objects, 'c', manifest);
  const [shard] = manifest.shards;
  if (!shard) throw new Error('no shard');
  t.equal(shard.crc32c.length, 2 * 8);
  const content = await objects.get(`c/${shard.file}`);

  async function spoiled(change: (bytes: Buffer) => Buffer): Promise<void> {
    await objects.put(`c/${shard?.file}`, change(Buffer.from(content)));
    await verifyShards(objects, 'c', manifest);
  }
  const flip = (at: number) => (bytes: Buffer) => {
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    return bytes;
  };
  await t.resolves(spoiled((bytes) => bytes));
  await t.rejects(spoiled(flip(0)), { code: 'shard_corrupt', message: /shard-0.*chunk 0/ });
  await t.rejects(spoiled(flip(CHUNK_BYTES - 1)), { message: /chunk 0/ });
  await t.rejects(spoiled(flip(CHUNK_BYTES)), { message: /chunk 1/ });
  await t.rejects(
    spoiled((bytes) => bytes.subarray(0, -1)),
    { code: 'shard_corrupt', message: /has \d+ bytes, not/ },
  );
  await t.rejects(
    spoiled((bytes) => Buffer.concat([bytes, Buffer.alloc(1)])),
    { message: /has \d+ bytes, not/ },
  );
  await objects.put(`c/${shard.file}`, content);
  const other = { ...manifest, shards: [{ ...shard, sha256: '0'.repeat(64) }] };
  await t.rejects(verifyShards(objects, 'c', other), { message: /SHA-256/ });
  await objects.delete([`c/${shard.file}`]);
  await t.rejects(verifyShards(objects, 'c', manifest), { code: 'object_not_found' });
});

t.test('checksums do not depend on how the bytes are split', async (t) => {
  const bytes = Buffer.alloc(CHUNK_BYTES * 2 + 5, 'pattern');
  const sums = (size: number) => {
    const chunks = new ChunkChecksums();
    for (let at = 0; at < bytes.length; at += size) chunks.add(bytes.subarray(at, at + size));
    return chunks.finish();
  };
  const whole = sums(bytes.length);
  t.equal(whole.length, 3 * 8);
  t.same(sums(1_000_003), whole);
  t.same(sums(CHUNK_BYTES), whole);
  const known = new ChunkChecksums();
  known.add(Buffer.from('123456789'));
  t.same(known.finish(), 'e3069283', 'the check value of CRC32C (RFC 3720)');
  t.same(new ChunkChecksums().finish(), '');
});
