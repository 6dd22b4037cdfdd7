// Links of the Markdown pages: each names an existing file, and an existing heading of a page.
import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { listFiles } from '../bootstrap/fingerprint.mjs';
import { inRoot } from '../bootstrap/paths.mjs';

const withoutCode = (text) =>
  text
    .replaceAll(/^ *```[\s\S]*?^ *```/gm, '')
    .replaceAll(/`[^`]*`/g, (code) => code.replaceAll(/[()[\]]/g, ''));

/** The anchor that GitHub gives a heading. */
const anchorOf = (heading) =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-');

/** @param {string} text of a page @returns {string[]} its anchors */
const anchorsOf = (text) =>
  [...withoutCode(text).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchorOf(heading));

/**
 * @param {Map<string, string>} pages text by path from the root
 * @param {(path: string) => boolean} exists whether there is such a file or folder
 * @returns {string[]} one line per broken link
 */
export function brokenLinks(pages, exists) {
  return [...pages].flatMap(([page, text]) => {
    const links = [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link);
    return links.flatMap((link) => {
      if (/^[a-z]+:/.test(link)) return [];
      const [path, anchor] = link.split('#');
      const target = path === '' ? page : posix.join(posix.dirname(page), path);
      if (!exists(target)) return [`${page}: ${link} names no file`];
      if (anchor === undefined || !pages.has(target)) return [];
      return anchorsOf(pages.get(target)).includes(anchor) ? [] : [`${page}: ${link} names no heading`];
    });
  });
}

/** Broken links of all pages. */
export function linkProblems() {
  const accept = (path) =>
    path.endsWith('/') ? !/(^|\/)(node_modules|build)\/$/.test(path) : path.endsWith('.md');
  const files = listFiles(['README.md', 'CONTRIBUTING.md', 'docs', 'bench', 'clients', 'infra'], accept);
  const pages = new Map(files.map((file) => [file, readFileSync(inRoot(file), 'utf8')]));
  return brokenLinks(pages, (path) => existsSync(inRoot(path)));
}
