import t from 'tap';
import { longLines } from './columns.mjs';

const words = (columns) => 'word '.repeat(columns / 5 + 1).slice(0, columns);

t.test('comments have at most 120 columns, in each language', async (t) => {
  for (const [file, sign] of [
    ['a.ts', '// '],
    ['a.ts', ' * '],
    ['a.cu', '/// '],
    ['a.py', '# '],
    ['a.tf', '# '],
    ['a.lua', '-- '],
  ]) {
    t.same(longLines(file, `x\n${sign}${words(120 - sign.length)}`), [], file);
    t.same(longLines(file, `x\n${sign}${words(121 - sign.length)}`), [2], file);
  }
  t.same(longLines('a.ts', `// ${words(100)} https://example.com/${'x'.repeat(40)}`), [], 'an address');
});

t.test('code may have more for a literal', async (t) => {
  t.same(longLines('a.py', `call(${'argument, '.repeat(12)})`), [1]);
  t.same(longLines('a.ts', `const text = '${words(120)}';`), []);
  t.same(longLines('a.tf', `value = ${'x'.repeat(120)}`), [], 'terraform formats its own code');
});

t.test('pages: text, but no code, table or image', async (t) => {
  const code = `\`\`\`sh\n${words(130)}\n\`\`\``;
  t.same(longLines('a.md', `${words(121)}\n${code}\n| ${words(121)} |\n![${words(121)}](a.png)`), [1]);
});
