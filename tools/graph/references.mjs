// What the text of a source file refers to: imports, files that it names, and included headers.
import { posix } from 'node:path';

const IMPORT = /(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g;
const INCLUDE = /^\s*#\s*include\s*[<"]([^>"]+)[>"]/;
/** A sequence of quoted path parts, and the project's root where it stands before them. */
const QUOTED = /(projectRoot\(\),\s*|inRoot\(\s*|\broot,\s*)?((?:'[\w./@-]+'(?:,\s*)?)+)/g;
const PART = /'([^']+)'/g;

/** Files with imports. */
export const IS_CODE = /\.(ts|tsx|mjs)$/;

/**
 * @param {string} file path from the root
 * @param {string} text its contents
 * @returns {string[]} relative imports, as paths from the root with the extension of the import
 */
export function importsOf(file, text) {
  return Array.from(text.matchAll(IMPORT), ([, path]) => posix.join(posix.dirname(file), path));
}

/** @returns {string | undefined} the header that a line of C++ includes */
export const includedHeader = (line) => INCLUDE.exec(line)?.[1];

/**
 * Paths in string literals: `join(projectRoot(), 'docs', 'guide.md')`, `new URL('thread.js', import.meta.url)`,
 * `'api/main.js'`.
 * @param {string} file path from the root
 * @param {string} text its contents
 * @returns {{files: string[], folders: string[]}} candidates, as paths from the root. Every literal is a candidate,
 *   relative to the root and to the file's folder, so most of them do not exist. `folders` has only paths that follow
 *   the project's root
 */
export function namedPaths(file, text) {
  const [files, folders] = [[], []];
  for (const [, isRooted, sequence] of text.matchAll(QUOTED)) {
    const parts = Array.from(sequence.matchAll(PART), ([, part]) => part);
    const whole = posix.join(...parts);
    for (const path of [whole, ...parts]) files.push(path, posix.join(posix.dirname(file), path));
    if (isRooted) folders.push(whole);
  }
  return { files, folders };
}
