import t from 'tap';
import { unusedExports } from './exports.mjs';

t.test('an export is named by another file', async (t) => {
  const files = { 'a.ts': 'export const USED = 1;\nexport async function left() {}\n', 'b.ts': 'USED;\n' };
  t.same(unusedExports(new Map(Object.entries(files))), [
    'a.ts exports left, and no other file names it: remove the word export',
  ]);
});
