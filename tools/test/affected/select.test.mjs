/** Selection of suites by changes, on a small graph. */
import t from 'tap';
import { Reach, selectAffected } from './select.mjs';

const graph = new Map(
  Object.entries({
    'native asan': ['native/core/a.cc'],
    'test/e2e/far.deep.test.ts': ['ops/stack/main.ts'],
    'test/console/near.deep.test.ts': ['clients/console/view.tsx', 'ops/stack/main.ts'],
    'api/quick.test.ts': ['api/testing/helper.ts', 'api/forgotten.ts'],
    'ops/stack/main.ts': ['api/main.ts'],
    'api/main.ts': ['api/routes.ts'],
  }).map(([node, edges]) => [node, new Set(edges)]),
);
const suites = ['native asan', 'test/e2e/far.deep.test.ts', 'test/console/near.deep.test.ts'];
const reach = new Reach(graph, suites, ['api/quick.test.ts']);
const select = (...changed) => selectAffected(changed, reach);
const names = ({ affected }) => affected.map(({ suite }) => suite);

t.test('a change affects the suites that need the file', async (t) => {
  t.same(names(select('clients/console/view.tsx')), ['test/console/near.deep.test.ts']);
  t.same(names(select('native/core/a.cc')), ['native asan']);
  const { affected, unaffected } = select('api/routes.ts');
  t.same(
    affected.map(({ suite, distance }) => [suite, distance]),
    [
      ['test/e2e/far.deep.test.ts', 3],
      ['test/console/near.deep.test.ts', 3],
    ],
  );
  t.match(affected[0].reason, 'needs api/routes.ts');
  t.same(unaffected, [{ suite: 'native asan', reason: 'needs none of the changed files, but 1 others' }]);
});

t.test('the nearest change counts: a changed test comes first', async (t) => {
  const { affected } = select('api/routes.ts', 'clients/console/view.tsx', 'test/e2e/far.deep.test.ts');
  t.same(
    affected.map(({ suite, distance, reason }) => [suite, distance, reason]),
    [
      ['test/e2e/far.deep.test.ts', 0, 'changed itself'],
      ['test/console/near.deep.test.ts', 1, 'needs clients/console/view.tsx'],
    ],
  );
});

for (const file of ['package-lock.json', 'tools/bootstrap/setup.mjs', 'tools/test/typescript.mjs'])
  t.test(`${file} affects every suite, those with a nearer change first`, async (t) => {
    const { affected, unaffected } = select('clients/console/view.tsx', file);
    t.same(names({ affected })[0], 'test/console/near.deep.test.ts');
    t.equal(affected.length, 3);
    t.same(unaffected, []);
    t.match(affected[1].reason, `${file}: every suite depends on it`);
  });

t.test('a file that no rule knows affects every suite', async (t) => {
  const { affected } = select('new-folder/data.bin');
  t.equal(affected.length, 3);
  t.match(affected[0].reason, 'new-folder/data.bin: no rule knows what depends on it');
});

t.test(
  'code of a product that only quick tests reach affects every suite: something starts it',
  async (t) => {
    t.equal(select('api/forgotten.ts').affected.length, 3);
  },
);

t.test('quick tests, their helpers and unread pages affect none', async (t) => {
  const { affected, ignored } = select('api/quick.test.ts', 'api/testing/helper.ts', 'docs/pools.md');
  t.same(affected, []);
  t.same(
    ignored.map(({ file, why }) => [file, why]),
    [
      ['api/quick.test.ts', 'a quick test'],
      ['api/testing/helper.ts', 'only quick tests reach it'],
      ['docs/pools.md', 'no deep test reads this page'],
    ],
  );
});

t.test('a deleted file affects those that still need it', async (t) => {
  const deleted = (...changed) => names(selectAffected(changed, reach, () => true));
  t.same(deleted('native/core/a.cc'), ['native asan']);
  t.same(deleted('platform/gone.ts'), []);
  t.equal(deleted('package.json').length, 3);
});

t.test('without changes nothing is affected', async (t) => {
  t.same(select().affected, []);
  t.equal(select().unaffected.length, 3);
});
