/** Checks that a load detects changed and missing bytes of a checkpoint, with a code that causes a fallback. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Test } from 'tap';
import { checkpointDirectory, checkpointKey, MANIFEST_FILE } from '../../../formats/checkpoint/layout.js';
import { encodeManifest } from '../../../formats/checkpoint/manifest.js';
import { verifyShards } from '../../../formats/checkpoint/verify.js';
import { type ObjectStore, openObjectStore } from '../../../platform/object-store/index.js';
import { buildManifest } from '../../agent/checkpoint/commit.js';
import { codeOf, isBadCheckpoint } from '../../shared/errors.js';
import { readManifest } from '../../shared/read-manifest.js';
import { verifyLoadedRanges } from '../../shared/verify-load.js';
import { fakeCore } from '../fake-core.js';
import { LocalWorld } from '../local-ranks.js';
import { testSpec } from '../start-message.js';

const core = fakeCore();
const spec = testSpec();
const directory = checkpointKey('job', checkpointDirectory({ step: 0, execution: '1-a', nonce: 'test' }));
export const source = { kind: 'checkpoint', directory, restore: 'full', own: true } as const;

/** Opens a store, with functions that damage its objects directly. */
export async function store(t: Test) {
  const root = t.testdir();
  const objects = await openObjectStore(pathToFileURL(root).href);
  t.teardown(() => objects.close());
  const replace = (key: string, bytes: Uint8Array) => writeFile(join(root, key), bytes);
  const remove = (key: string) => rm(join(root, key));
  return { objects, replace, remove };
}

/** Distances in bytes between the tested positions; prime to 8, so that every bit of a byte is tested. */
interface Stride {
  manifest: number;
  shard: number;
}

const strideOf = (key: string, stride: Stride) =>
  key.endsWith(MANIFEST_FILE) ? stride.manifest : stride.shard;

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
export async function verify(objects: ObjectStore, where = directory): Promise<string | null> {
  try {
    await verifyShards(objects, where, await readManifest(objects, where));
    return null;
  } catch (error) {
    return codeOf(error) ?? String(error);
  }
}

/** One changed bit in every region of every object. */
export async function checkFlips(t: Test, stride: Stride): Promise<void> {
  const { objects, replace } = await store(t);
  for (const key of await save(objects)) {
    const good = await objects.get(key);
    const undetected: number[] = [];
    for (let at = 0; at < good.length; at += strideOf(key, stride)) {
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
}

/** Every truncated or missing object. */
export async function checkCuts(t: Test, stride: Stride): Promise<void> {
  const { objects, replace, remove } = await store(t);
  for (const key of await save(objects)) {
    const good = await objects.get(key);
    const undetected: number[] = [];
    for (let length = 0; length < good.length; length += strideOf(key, stride)) {
      await replace(key, good.subarray(0, length));
      const codes = [await load(objects), await verify(objects)];
      if (!codes.every((code) => isBadCheckpoint(code ?? ''))) undetected.push(length);
    }
    t.strictSame(undetected, [], `${key}, ${good.length} bytes`);
    await remove(key);
    t.strictSame([await load(objects), await verify(objects)], ['object_not_found', 'object_not_found']);
    await replace(key, good);
  }
}
