/** Whatever byte of a checkpoint changes or is cut off: the load finds it, and says so in one of the codes that fall back. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { checkpointDirectory, checkpointKey, MANIFEST_FILE } from '../../platform/checkpoint/layout.js';
import { CHUNK_BYTES, encodeManifest } from '../../platform/checkpoint/manifest.js';
import { verifyShards } from '../../platform/checkpoint/verify.js';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import { putTestCheckpoint } from '../../platform/testing/checkpoints.js';
import { isBadCheckpoint } from '../attempt/failure.js';
import { codeOf } from '../common/errors.js';
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

/** A store, and how its objects are damaged behind its back. */
async function store(t: Test) {
  const root = t.testdir();
  const objects = await openObjectStore(pathToFileURL(root).href);
  t.teardown(() => objects.close());
  const replace = (key: string, bytes: Uint8Array) => writeFile(join(root, key), bytes);
  const remove = (key: string) => rm(join(root, key));
  return { objects, replace, remove };
}

/**
 * How far apart the places are that are tried; prime to 8, so that every bit of a byte has its turn. All bytes of a manifest are
 * tried in format.test.ts.
 */
const STRIDE = { manifest: 97, shard: 13 };
const strideOf = (key: string) => (key.endsWith(MANIFEST_FILE) ? STRIDE.manifest : STRIDE.shard);

/** A checkpoint that two ranks wrote. Gives the keys of its objects. */
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

/** What three ranks and their agent say to it: the code of the error, or null when they take it. */
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

/** What `verify` says to it without ranks. */
async function verify(objects: ObjectStore, where = directory): Promise<string | null> {
  try {
    await verifyShards(objects, where, await readManifest(objects, where));
    return null;
  } catch (error) {
    return codeOf(error) ?? String(error);
  }
}

t.test('every region of every object, changed in one bit', async (t) => {
  const { objects, replace } = await store(t);
  for (const key of await save(objects)) {
    const good = await objects.get(key);
    const passed: number[] = [];
    for (let at = 0; at < good.length; at += strideOf(key)) {
      const bad = Buffer.from(good);
      bad[at] = (bad[at] ?? 0) ^ (1 << (at % 8));
      await replace(key, bad);
      const codes = [await load(objects), await verify(objects)];
      if (!codes.every((code) => isBadCheckpoint(code ?? ''))) passed.push(at);
    }
    t.strictSame(passed, [], `${key}, ${good.length} bytes`);
    await replace(key, good);
    t.equal(await load(objects), null, 'and taken when it is right again');
  }
});

t.test('every object cut anywhere, or gone', async (t) => {
  const { objects, replace, remove } = await store(t);
  for (const key of await save(objects)) {
    const good = await objects.get(key);
    const passed: number[] = [];
    for (let length = 0; length < good.length; length += strideOf(key)) {
      await replace(key, good.subarray(0, length));
      const codes = [await load(objects), await verify(objects)];
      if (!codes.every((code) => isBadCheckpoint(code ?? ''))) passed.push(length);
    }
    t.strictSame(passed, [], `${key}, ${good.length} bytes`);
    await remove(key);
    t.strictSame([await load(objects), await verify(objects)], ['object_not_found', 'object_not_found']);
    await replace(key, good);
  }
});

t.test(
  'shards of several chunks: the first and the last byte of each, and cuts at each border',
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
    };
    const taken = async () => {
      try {
        const all = { objects, source: { ...source, directory: 'whole' }, trainer, state, retry };
        const { ranges } = await loadCheckpoint(all);
        await verifyLoadedRanges(objects, 'whole', shards, ranges);
        return null;
      } catch (error) {
        return codeOf(error) ?? String(error);
      }
    };
    t.equal(await taken(), null);
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
          [await taken(), await verify(objects, 'whole')],
          ['shard_corrupt', 'shard_corrupt'],
          `${at}`,
        );
      }
      for (const length of [...borders, bytes - 1]) {
        await replace(key, good.subarray(0, length));
        t.strictSame(
          [await taken(), await verify(objects, 'whole')],
          ['invalid_range', 'shard_corrupt'],
          `cut ${length}`,
        );
      }
      await replace(key, good);
    }
  },
);
