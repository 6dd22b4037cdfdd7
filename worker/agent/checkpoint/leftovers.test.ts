/** Tests of the listing and removal of saves, and of the lineage. */
import t from 'tap';
import type { Checkpoint } from '../../../contracts/index.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { listSaves, mayRemove, removeSave, saveIdOf } from './leftovers.js';
import { outsideLineage } from './lineage.js';

const PREFIX = 'jobs/job/checkpoints/';
const at = (name: string) => `${PREFIX}${name}`;

/** Returns a store that lists keys in the given order. */
function storeOf(keys: string[]) {
  const deleted: string[][] = [];
  const objects = {
    list: async function* (prefix: string) {
      for (const key of keys.filter((key) => key.startsWith(prefix))) yield { key };
    },
    delete: async (some: string[]) => void deleted.push(some),
  } as unknown as ObjectStore;
  return { objects, deleted };
}

const OLD = '000000005-1-a-aaaaaaaa';
const NEW = '000000010-2-a-bbbbbbbb';

t.test('saves are listed with their files, the oldest step first', async (t) => {
  const keys = [
    at(`${OLD}/MANIFEST.json`),
    at(`${OLD}/shard-0`),
    at(`${OLD}/shard-1`),
    at(`${NEW}/old/MANIFEST.json`),
    at(`${NEW}/shard-0`),
    'jobs/job/spec.json',
  ];
  t.strictSame(await listSaves(storeOf(keys).objects, PREFIX), [
    {
      prefix: at(OLD),
      keys: [at(`${OLD}/MANIFEST.json`), at(`${OLD}/shard-0`), at(`${OLD}/shard-1`)],
      committed: true,
    },
    { prefix: at(NEW), keys: [at(`${NEW}/old/MANIFEST.json`), at(`${NEW}/shard-0`)], committed: false },
  ]);
});

t.test('a manifest is deleted before its shards, and once', async (t) => {
  const keys = [at(`${OLD}/shard-0`), at(`${OLD}/MANIFEST.json`), at(`${OLD}/PINNED`)];
  const { objects, deleted } = storeOf(keys);
  await removeSave(objects, { prefix: at(OLD), keys, committed: true });
  t.strictSame(deleted, [[at(`${OLD}/MANIFEST.json`), at(`${OLD}/shard-0`), at(`${OLD}/PINNED`)]]);
});

t.test('the name of a save contains its execution and step', async (t) => {
  t.strictSame(saveIdOf(at(NEW)), { execution: '2-a', step: 10 });
  t.strictSame(saveIdOf(NEW), { execution: '2-a', step: 10 });
  t.strictSame(saveIdOf(at('something')), { execution: '0-', step: 0 });
});

t.test('saves of a later epoch are not removed', async (t) => {
  t.equal(mayRemove(at(OLD), '2-a'), true);
  t.equal(mayRemove(at(NEW), '2-a'), true);
  t.equal(mayRemove(at(NEW), '1-a'), false);
  t.equal(mayRemove(at(NEW), '2-b'), false, 'nor saves of the same epoch with another token');
  t.equal(mayRemove(at('something'), '1-a'), true, 'no worker writes such a name');
});

t.test(
  'manifests older than the newest recorded one belong to the lineage only if they are recorded',
  async (t) => {
    const save = (name: string, committed = true) => ({ prefix: at(name), keys: [], committed });
    const saves = [
      save(OLD),
      save('000000007-1-a-cccccccc'),
      save('000000008-1-a-dddddddd', false),
      save(NEW),
      save('000000012-2-a-eeeeeeee'),
      save('000000014-3-a-ffffffff'),
      save('something'),
    ];
    const record = (name: string) => ({ prefix: at(name) }) as Checkpoint;
    const outside = (...names: string[]) =>
      outsideLineage(saves, names.map(record)).map(({ prefix }) => prefix.slice(PREFIX.length));
    t.strictSame(outside(OLD, NEW), ['000000007-1-a-cccccccc', 'something']);
    t.strictSame(
      outside(OLD),
      ['something'],
      'later ones belong to it: their agent died before it could record them',
    );
    const outsideNames = ['000000007-1-a-cccccccc', 'something', OLD];
    t.strictSame(outside('000000012-2-b-eeeeeeee'), [
      OLD,
      '000000007-1-a-cccccccc',
      NEW,
      '000000012-2-a-eeeeeeee',
      'something',
    ]);
    t.strictSame(
      outside('000000008-1-a-dddddddd').sort(),
      outsideNames.sort(),
      'a retention was interrupted',
    );
    t.strictSame(outside(), [], 'none is recorded');
    t.strictSame(outside('something'), []);
  },
);
