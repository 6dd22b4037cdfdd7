import t from 'tap';
import { brokenLinks } from './links.mjs';

const broken = (pages, files = []) => {
  const map = new Map(Object.entries(pages));
  return brokenLinks(map, (path) => map.has(path) || files.includes(path));
};

t.test('links name files and headings, from the page that has them', async (t) => {
  const pages = {
    'README.md': '[a](docs/a.md#two-words) [b](docs/b.ts) [own](#here)\n\n# Here\n',
    'docs/a.md': '# Two words\n\n[up](../README.md#here) [web](https://example.com/#x)\n',
  };
  t.same(broken(pages, ['docs/b.ts']), []);
  t.same(broken(pages), ['README.md: docs/b.ts names no file']);
});

t.test('a heading that is gone is named, a heading in code is none', async (t) => {
  const pages = { 'a.md': '[one](#one) [two](#two)\n\n# One\n\n```sh\n# two\n```\n' };
  t.same(broken(pages), ['a.md: #two names no heading']);
});

t.test('headings with code, links and signs have the anchors of GitHub', async (t) => {
  t.same(
    broken({ 'a.md': '# The `zero.stage` & [more](b.md)…\n\n[x](#the-zerostage--more)\n', 'b.md': '' }),
    [],
  );
});

t.test('links in code are none', async (t) => {
  t.same(broken({ 'a.md': 'Write `[x](y.md)`.\n\n```md\n[x](y.md)\n```\n' }), []);
});
