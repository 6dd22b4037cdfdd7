/** Tests that a load detects every changed or missing byte of a checkpoint, with a code that causes a fallback. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { checkpointDirectory, checkpointKey, MANIFEST_FILE } from '../../platform/checkpoint/layout.js';
import { CHUNK_BYTES, encodeManifest } from '../../platform/checkpoint/manifest.js';
import { verifyShards } from '../../platform/checkpoint/verify.js';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import { putTestCheckpoint } from '../../platform/testing/checkpoints.js';
import { codeOf, isBadCheckpoint } from '../common/errors.js';
import type { RankTrainer } from '../native/adapter.js';
import { loadCheckpoint } from '../rank/load/load-checkpoint.js';
import { fakeCore } from '../testing/fake-core.js';
import { LocalWorld } from '../testing/local-ranks.js';
import { testSpec } from '../testing/start-message.js';
import { buildManifest } from './commit.js';
import { readManifest } from './read-manifest.js';
import { verifyLoadedRanges } from './verify-load.js';

const core = fakeCore();
const spec = testSpec();
const directory = checkpointKey('job', checkpointDirectory({ step: 0, execution: '1-a', nonce: 'test' }));
const source = { kind: 'checkpoint', directory, restore: 'full', own: true } as const;
const retry = { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 };

/** Opens a store, with functions that damage its objects directly. */
async function store(t: Test) {
  const root = t.testdir();
  const objects = await openObjectStore(pathToFileURL(root).href);
  t.teardown(() => objects.close());
  const replace = (key: string, bytes: Uint8Array) => writeFile(join(root, key), bytes);
  const remove = (key: string) => rm(join(root, key));
  return { objects, replace, remove };
}

/**
 * Distance in bytes between the tested positions; prime to 8, so that every bit of a byte is tested. format.test.ts tests all bytes of a
 * manifest.
 */
const STRIDE = { manifest: 97, shard: 13 };
const strideOf = (key: string) => (key.endsWith(MANIFEST_FILE) ? STRIDE.manifest : STRIDE.shard);

/** Saves a checkpoint with two ranks. Returns the keys of its objects. */
async function save(objects: ObjectStore): Promise<string[]> {
  const world = await LocalWorld.start({ core, spec, world_size: 2, job_id: 'job', nonce: 'test' });
  await world.initialize();
  const complete = await world.save(objects);
  const by = {
    spec,
    connected: world.connected,
    world_size: 2,
    epoch: 1,
    parent: null,
    data_digest: 'sha256:0',
    tokens_digest: 'sha256:0',
  };
  const manifest = buildManifest('job', complete, by);
  await objects.put(`${directory}/${MANIFEST_FILE}`, encodeManifest(manifest));
  return [MANIFEST_FILE, ...manifest.shards.map(({ file }) => file)].map((file) => `${directory}/${file}`);
}

/** Loads with three ranks and verifies as their agent. Returns the error code, or null on success. */
async function load(objects: ObjectStore): Promise<string | null> {
  try {
    const manifest = await readManifest(objects, directory);
    const world = await LocalWorld.start({ core, spec, world_size: 3 });
    const { ranges } = await world.load(objects, source);
    await verifyLoadedRanges(objects, directory, manifest.shards, ranges);
    return null;
  } catch (error) {
    return codeOf(error) ?? String(error);
  }
}

/** Runs `verify` without ranks. Returns the error code, or null on success. */
async function verify(objects: ObjectStore, where = directory): Promise<string | null> {
  try {
    await verifyShards(objects, where, await readManifest(objects, where));
    return null;
  } catch (error) {
    return codeOf(error) ?? String(error);
  }
}

t.test('one changed bit in every region of every object is detected', async (t) => {
  const { objects, replace } = await store(t);
  for (const key of await save(objects)) {
    const good = await objects.get(key);
    const undetected: number[] = [];
    for (let at = 0; at < good.length; at += strideOf(key)) {
      const bad = Buffer.from(good);
      bad[at] = (bad[at] ?? 0) ^ (1 << (at % 8));
      await replace(key, bad);
      const codes = [await load(objects), await verify(objects)];
      if (!codes.every((code) => isBadCheckpoint(code ?? ''))) undetected.push(at);
    }
    t.strictSame(undetected, [], `${key}, ${good.length} bytes`);
    await replace(key, good);
    t.equal(await load(objects), null, 'the restored object loads');
  }
});

t.test('every truncated or missing object is detected', async (t) => {
  const { objects, replace, remove } = await store(t);
  for (const key of await save(objects)) {
    const good = await objects.get(key);
    const undetected: number[] = [];
    for (let length = 0; length < good.length; length += strideOf(key)) {
      await replace(key, good.subarray(0, length));
      const codes = [await load(objects), await verify(objects)];
      if (!codes.every((code) => isBadCheckpoint(code ?? ''))) undetected.push(length);
    }
    t.strictSame(undetected, [], `${key}, ${good.length} bytes`);
    await remove(key);
    t.strictSame([await load(objects), await verify(objects)], ['object_not_found', 'object_not_found']);
    await replace(key, good);
  }
});

t.test(
  'shards with several chunks: the first and last byte of each chunk, and truncations at each border',
  async (t) => {
    const { objects, replace } = await store(t);
    const sharding = { block_elements: 4096, bucket_blocks: 64, expert_sets: 1 };
    const shape = { numels: [700_000, 600_000], ranks: 2, sharding };
    const { shards, params } = await putTestCheckpoint(objects, 'whole', shape);
    const slices = [0, 1].map((param) => ({ param, begin: 0, end: shape.numels[param] ?? 0 }));
    const trainer = { slices: () => slices, load: () => undefined } as unknown as RankTrainer;
    const state = {
      params,
      optimizer: 'adamw' as const,
      states: ['master', 'exp_avg', 'exp_avg_sq'] as const,
      num_base: params.length,
    };
    const loadCode = async () => {
      try {
        const all = { objects, source: { ...source, directory: 'whole' }, trainer, state, retry };
        const { ranges } = await loadCheckpoint(all);
        await verifyLoadedRanges(objects, 'whole', shards, ranges);
        return null;
      } catch (error) {
        return codeOf(error) ?? String(error);
      }
    };
    t.equal(await loadCode(), null);
    for (const { file, bytes, crc32c } of shards) {
      const chunks = crc32c.length / 8;
      t.ok(chunks > 1, `${file} has ${chunks} chunks`);
      const key = `whole/${file}`;
      const good = await objects.get(key);
      const borders = Array.from({ length: chunks }, (_, chunk) => chunk * CHUNK_BYTES);
      for (const at of [...borders, ...borders.slice(1).map((border) => border - 1), bytes - 1]) {
        const bad = Buffer.from(good);
        bad[at] = (bad[at] ?? 0) ^ 0x80;
        await replace(key, bad);
        t.strictSame(
          [await loadCode(), await verify(objects, 'whole')],
          ['shard_corrupt', 'shard_corrupt'],
          `${at}`,
        );
      }
      for (const length of [...borders, bytes - 1]) {
        await replace(key, good.subarray(0, length));
        t.strictSame(
          [await loadCode(), await verify(objects, 'whole')],
          ['invalid_range', 'shard_corrupt'],
          `cut ${length}`,
        );
      }
      await replace(key, good);
    }
  },
);
