import t from 'tap';
import { longFiles } from './lengths.mjs';

t.test('a file has at most 300 lines', async (t) => {
  const lines = (count) => 'line\n'.repeat(count);
  t.same(longFiles([['a.ts', lines(300)]]), []);
  t.same(longFiles([['a.ts', lines(301)]]), ['a.ts has 301 lines: at most 300; split it by subject']);
});
