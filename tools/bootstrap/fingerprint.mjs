import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { inRoot, root } from './paths.mjs';

/**
 * Lists the files below the given project paths, sorted, without following links.
 * @param {string[]} paths files or folders, relative to the root; missing ones are skipped
 * @param {(path: string) => boolean} accept called with each path relative to the root; refused folders are not entered
 * @returns {string[]} paths relative to the root
 */
export function listFiles(paths, accept) {
  const found = [];
  const visit = (absolute) => {
    const path = relative(root, absolute);
    const stat = statSync(absolute);
    if (!accept(stat.isDirectory() ? `${path}/` : path)) return;
    if (!stat.isDirectory()) {
      found.push(path);
      return;
    }
    for (const entry of readdirSync(absolute)) visit(join(absolute, entry));
  };
  for (const path of paths) if (existsSync(inRoot(path))) visit(inRoot(path));
  return found.sort();
}

/**
 * SHA-256 over names and contents: unlike modification times, it survives a fresh checkout and detects removed files.
 */
export function fingerprint(files) {
  const hash = createHash('sha256');
  for (const file of files) {
    const content = readFileSync(inRoot(file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/** True when the stamp file holds exactly this fingerprint. */
export function stampMatches(stampFile, value) {
  return existsSync(stampFile) && readFileSync(stampFile, 'utf8') === value;
}

/** Records the fingerprint of a build. Written last, so that an interrupted build is repeated. */
export function writeStamp(stampFile, value) {
  mkdirSync(dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, value);
}
