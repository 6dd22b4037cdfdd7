import t from 'tap';
import { folderCycles, largeFolders } from './folders.mjs';

t.test('sibling folders that import each other form a cycle, at any depth', async (t) => {
  const cycles = folderCycles([
    ['room/a/one.ts', 'room/b/two.ts'],
    ['room/b/two.ts', 'room/c/deep/three.ts'],
    ['room/c/deep/other.ts', 'room/a/one.ts'],
    ['room/a/one.ts', 'elsewhere/one.ts'],
  ]);
  t.equal(cycles.length, 1);
  t.match(cycles[0], /^folders of room form a dependency cycle:/);
  t.match(cycles[0], 'room/c/deep/other.ts -> room/a/one.ts');
});

t.test('a folder and its parent form no cycle', async (t) => {
  t.same(
    folderCycles([
      ['room/index.ts', 'room/a/one.ts'],
      ['room/a/one.ts', 'room/common.ts'],
      ['room/a/one.ts', 'room/a/inner/two.ts'],
      ['room/a/inner/two.ts', 'room/a/three.ts'],
    ]),
    [],
  );
});

t.test('a folder has at most thirty files', async (t) => {
  const files = Array.from({ length: 31 }, (_, i) => `room/${i}.ts`);
  t.same(largeFolders(files.slice(1)), []);
  t.same(largeFolders(files), ['room has 31 files: the limit is 30']);
});
