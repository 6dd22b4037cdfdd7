import t from 'tap';
import { folderCycles, largeFolders } from './folders.mjs';

t.test('folders side by side that need each other are a cycle, at any depth', async (t) => {
  const cycles = folderCycles([
    ['room/a/one.ts', 'room/b/two.ts'],
    ['room/b/two.ts', 'room/c/deep/three.ts'],
    ['room/c/deep/other.ts', 'room/a/one.ts'],
    ['room/a/one.ts', 'elsewhere/one.ts'],
  ]);
  t.equal(cycles.length, 1);
  t.match(cycles[0], /^folders of room in a cycle: /);
  t.match(cycles[0], 'room/c/deep/other.ts -> room/a/one.ts');
});

t.test('a folder and the files beside it are none, unless these count as a folder', async (t) => {
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

t.test('files beside a folder may count as one', async (t) => {
  const imports = [
    ['room/index.h', 'room/a/one.h'],
    ['room/a/one.h', 'room/common.h'],
  ];
  t.same(folderCycles(imports), []);
  t.match(folderCycles(imports, { withFiles: true }), [/^folders of room in a cycle/]);
});

t.test('a folder has at most thirty files', async (t) => {
  const files = Array.from({ length: 31 }, (_, i) => `room/${i}.ts`);
  t.same(largeFolders(files.slice(1)), []);
  t.same(largeFolders(files), ['room has 31 files: at most 30 lie in one folder']);
});
