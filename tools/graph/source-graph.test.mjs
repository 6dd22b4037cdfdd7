/** Edges of a small tree: imports, named files and folders, includes, and declared edges. */
import t from 'tap';
import { distancesFrom, sourceGraph } from './source-graph.mjs';

/** The edges of each file. */
function edgesOf(texts, declared = [], suites = []) {
  const graph = sourceGraph(Object.keys(texts), (file) => texts[file], declared, suites);
  return Object.fromEntries([...graph].map(([node, edges]) => [node, [...edges].sort()]));
}

t.test('imports lead to sources, whatever their extension', async (t) => {
  const { 'a/main.ts': main, 'clients/console/view.tsx': view } = edgesOf({
    'a/main.ts': `import { x } from './x.js';\nexport * from '../b/y.js';\nconst z = await import('./z.mjs');`,
    'a/x.ts': '',
    'b/y.ts': '',
    'a/z.mjs': '',
    'clients/console/view.tsx': `import type { Part } from './part.js';`,
    'clients/console/part.tsx': '',
  });
  t.same(main, ['a/x.ts', 'a/z.mjs', 'b/y.ts']);
  t.same(view, ['clients/console/part.tsx']);
});

t.test('a program that is started by its path is needed', async (t) => {
  const { 'a/start.ts': edges } = edgesOf({
    'a/start.ts': `
      new Worker(new URL('thread.js', import.meta.url));
      fork(fileURLToPath(new URL('../b/main.js', import.meta.url)));
      spawn(process.execPath, [join(projectRoot(), 'dist', 'c', 'main.js')]);
      spawn('python3', [inRoot('tools', 'check.py'), '--out', 'a']);`,
    'a/thread.ts': '',
    'b/main.ts': '',
    'c/main.ts': '',
    'tools/check.py': '',
    'tools/other.py': '',
  });
  t.same(edges, ['a/thread.ts', 'b/main.ts', 'c/main.ts', 'tools/check.py']);
});

t.test('of a folder below the root its files are read, code is not run', async (t) => {
  const { 'a/read.ts': edges, 'a/say.ts': none } = edgesOf({
    'a/read.ts': `const page = (name: string) => join(projectRoot(), 'docs', name);`,
    'a/say.ts': `const folder = 'docs';`,
    'docs/guide.md': '',
    'docs/made/table.md': '',
    'docs/make.ts': '',
  });
  t.same(edges, ['docs/guide.md', 'docs/made/table.md']);
  t.same(none, []);
});

t.test('headers are found from native/, beside the source and among those of others', async (t) => {
  const { 'native/core/a.cc': edges } = edgesOf({
    'native/core/a.cc':
      '#include "core/a.h"\n#  include <doctest/doctest.h>\n#include "near.h"\n#include <vector>\n',
    'native/core/a.h': '',
    'native/core/near.h': '',
    'native/third_party/doctest/doctest.h': '',
  });
  t.same(edges, ['native/core/a.h', 'native/core/near.h', 'native/third_party/doctest/doctest.h']);
});

t.test('declared edges start at files and at suites', async (t) => {
  const declared = [
    { from: /^native asan$/, to: /^native\/.*\.cc$/ },
    { from: /^a\/addon\.ts$/, to: /^native\// },
  ];
  const edges = edgesOf({ 'a/addon.ts': '', 'native/a.cc': '', 'native/a.h': '' }, declared, ['native asan']);
  t.same(edges['native asan'], ['native/a.cc']);
  t.same(edges['a/addon.ts'], ['native/a.cc', 'native/a.h']);
});

t.test('distances are those of the shortest way', async (t) => {
  const graph = new Map([
    ['a', new Set(['b', 'c'])],
    ['b', new Set(['c', 'd'])],
    ['c', new Set(['a'])],
    ['e', new Set(['a'])],
  ]);
  t.same(
    [...distancesFrom(graph, 'a')],
    [
      ['a', 0],
      ['b', 1],
      ['c', 1],
      ['d', 2],
    ],
  );
});
