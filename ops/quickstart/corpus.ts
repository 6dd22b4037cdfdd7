import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

/** A text of real documentation, deterministic for the same installed packages. */
interface Corpus {
  text: Buffer;
  num_files: number;
}

const MIN_FILE_BYTES = 500;

/** Markdown files below `dir` in order of their path, without following links. */
function markdownFiles(dir: string): string[] {
  const entries = readdirSync(dir, { withFileTypes: true });
  const found = entries.flatMap((entry) => {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) return markdownFiles(path);
    return entry.isFile() && entry.name.toLowerCase().endsWith('.md') ? [path] : [];
  });
  return found;
}

/**
 * Joins the Markdown files of the installed packages into one text.
 *
 * Changelogs, licences (repetitive) and duplicate files are skipped. Files are ordered by the hash of their path: any
 * limit then samples all packages instead of the alphabetically first ones.
 * @param packagesDir the node_modules directory
 * @param maxBytes upper bound of the text; a file that does not fit is skipped
 */
export function buildCorpus(packagesDir: string, maxBytes: number): Corpus {
  const hash = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');
  const candidates = markdownFiles(packagesDir)
    .map((path) => ({ path, order: hash(relative(packagesDir, path).split(sep).join('/')) }))
    .filter(({ path }) => !/(changelog|changes|history|license|licence|notice)[^/]*$/i.test(path))
    .sort((a, b) => (a.order < b.order ? -1 : 1));

  const seen = new Set<string>();
  const parts: Buffer[] = [];
  const separator = Buffer.from('\n\n');
  let bytes = 0;
  for (const { path } of candidates) {
    const size = lstatSync(path).size;
    if (size < MIN_FILE_BYTES || bytes + size + separator.length > maxBytes) continue;
    const content = readFileSync(path);
    const digest = hash(content);
    if (seen.has(digest) || !isUtf8(content)) continue;
    seen.add(digest);
    parts.push(content, separator);
    bytes += content.length + separator.length;
  }
  return { text: Buffer.concat(parts), num_files: seen.size };
}
