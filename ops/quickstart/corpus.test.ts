import { writeFileSync } from 'node:fs';
import t from 'tap';
import { buildCorpus } from './corpus.js';

const page = (title: string) => `# ${title}\n\n${`${title} is described here. `.repeat(40)}\n`;

t.test('uses each documentation file once and ignores other files', async (t) => {
  const dir = t.testdir({
    one: { 'README.md': page('one'), 'CHANGELOG.md': page('changes'), 'LICENSE.md': page('license') },
    two: { docs: { 'guide.MD': page('guide') }, 'copy.md': page('one'), 'index.js': page('code') },
    three: { 'README.md': 'too short' },
  });
  const { text, num_files } = buildCorpus(dir, 1e6);
  t.equal(num_files, 2);
  t.ok(text.includes('# one') && text.includes('# guide'));
  t.notOk(/changes|license|code|too short/.test(text.toString()));
});

t.test('the same files give the same text in any order', async (t) => {
  const files = {
    a: { 'README.md': page('a') },
    b: { 'README.md': page('b') },
    c: { 'README.md': page('c') },
  };
  const reversed = Object.fromEntries(Object.entries(files).reverse());
  const first = buildCorpus(t.testdir(files), 1e6).text;
  t.ok(first.equals(buildCorpus(t.testdir(reversed), 1e6).text));
});

t.test('files that are not UTF-8 are skipped, and the limit holds', async (t) => {
  const dir = t.testdir({
    latin1: { 'README.md': '' },
    ok: { 'README.md': page('ok') },
    big: { 'README.md': page('x'.repeat(99)) },
  });
  writeFileSync(`${dir}/latin1/README.md`, Buffer.from(page('déjà vu'), 'latin1'));
  const { text, num_files } = buildCorpus(dir, 2000);
  t.equal(num_files, 1);
  t.ok(text.length <= 2000 && text.includes('# ok'));
});

t.test('a folder without documentation gives an empty text', async (t) => {
  t.strictSame(buildCorpus(t.testdir({}), 1e6), { text: Buffer.alloc(0), num_files: 0 });
});
