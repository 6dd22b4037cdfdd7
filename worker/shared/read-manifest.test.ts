import t from 'tap';
import { encodeManifest } from '../../formats/checkpoint/manifest.js';
import { testManifest } from '../../formats/testing/checkpoints.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { readManifest } from './read-manifest.js';

/** Returns a store of one object. */
const storeOf = (key: string, bytes: Buffer) =>
  ({
    get: async (requested: string) => {
      if (requested !== key) throw new Error(`${requested} does not exist`);
      return bytes;
    },
  }) as unknown as ObjectStore;

const manifest = testManifest({ numels: [100, 7], ranks: 2 });

t.test('a manifest is read from the directory of its shards', async (t) => {
  const objects = storeOf('dir/MANIFEST.json', encodeManifest(manifest));
  t.strictSame(await readManifest(objects, 'dir'), manifest);
});

t.test('a manifest without the shards of all ranks is invalid', async (t) => {
  const half = { ...manifest, shards: manifest.shards.slice(1) };
  const objects = storeOf('dir/MANIFEST.json', encodeManifest(half));
  await t.rejects(readManifest(objects, 'dir'), {
    code: 'manifest_invalid',
    message: /1 shards of 2 ranks/,
    cause: { code: 'checkpoint_incomplete' },
  });
  const cut = storeOf('dir/MANIFEST.json', Buffer.from('{'));
  await t.rejects(readManifest(cut, 'dir'), { code: 'manifest_invalid', message: /not JSON/ });
});
