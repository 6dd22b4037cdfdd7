import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import type { Dataset } from '../../contracts/index.js';
import { datasetKey } from '../../contracts/object-keys.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { prepareTokens } from './token-cache.js';

const TEXT = Buffer.from('Grüße, 世界\n'.repeat(1000));

function dataset(bytes: Uint8Array): Dataset {
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  const id = 'ds_01J00000000000000000000000';
  return {
    id,
    name: 'n',
    format: 'text',
    bytes: bytes.length,
    digest,
    num_tokens: bytes.length,
    created_at: '',
  };
}

async function setup(t: Test, stored: Uint8Array = TEXT) {
  const dir = t.testdir();
  const objects = await openObjectStore(pathToFileURL(join(dir, 'objects')).href, { create: true });
  t.teardown(() => objects.close());
  const request = { dataset: dataset(TEXT), object_key: '', cache_dir: join(dir, 'cache') };
  request.object_key = datasetKey(request.dataset.id);
  await objects.put(request.object_key, stored);
  return { objects, request };
}

t.test('each byte becomes a little-endian uint16', async (t) => {
  const { objects, request } = await setup(t);
  const tokens = await readFile(await prepareTokens(objects, request));
  t.equal(tokens.length, TEXT.length * 2);
  t.ok(TEXT.every((byte, i) => tokens.readUInt16LE(2 * i) === byte));
  t.equal((await readdir(request.cache_dir)).length, 1);
});

t.test('a prepared file is found again without the object store', async (t) => {
  const { objects, request } = await setup(t);
  const path = await prepareTokens(objects, request);
  await objects.delete([request.object_key]);
  t.equal(await prepareTokens(objects, request), path);
});

t.test('a file of the wrong size is made anew, and so are many at once', async (t) => {
  const { objects, request } = await setup(t);
  const path = await prepareTokens(objects, request);
  await writeFile(path, 'cut short');
  const paths = await Promise.all([1, 2, 3].map(() => prepareTokens(objects, request)));
  t.strictSame(paths, [path, path, path]);
  t.equal((await readFile(path)).length, TEXT.length * 2);
  t.equal((await readdir(request.cache_dir)).length, 1);
});

t.test('bytes that are not the uploaded ones are refused and leave nothing', async (t) => {
  const damaged = Buffer.from(TEXT);
  damaged[100]! ^= 1;
  for (const stored of [damaged, TEXT.subarray(1), Buffer.alloc(0)]) {
    const { objects, request } = await setup(t, stored);
    await t.rejects(prepareTokens(objects, request), { code: 'dataset_corrupt' });
    t.strictSame(await readdir(request.cache_dir), []);
  }
});

t.test('a missing object is an error of the object store', async (t) => {
  const { objects, request } = await setup(t);
  await objects.delete([request.object_key]);
  await t.rejects(prepareTokens(objects, request), { code: 'object_not_found' });
});

t.test('a cache that can not be written is an error of the file system', async (t) => {
  const { objects, request } = await setup(t);
  await mkdir(join(request.cache_dir, '..'), { recursive: true });
  await writeFile(request.cache_dir, 'a file where the directory should be');
  await t.rejects(prepareTokens(objects, request), { code: /EEXIST|ENOTDIR/ });
});
