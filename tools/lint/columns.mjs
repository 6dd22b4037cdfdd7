// Lines of comments, code and pages have at most 120 columns. Formatters break code, but no comment, no Python, and no
// page. A line may be longer for a text that cannot be broken without changing it: a literal, an address, a table.
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { listFiles } from '../bootstrap/fingerprint.mjs';
import { inRoot } from '../bootstrap/paths.mjs';

const MAX_COLUMNS = 120;
const SLASHES = /^\s*(\/\/|\/?\*)/;
const HASHES = /^\s*#/;
const COMMENTS = {
  ...Object.fromEntries(['.ts', '.tsx', '.mjs', '.h', '.cc', '.cu', '.cuh'].map((name) => [name, SLASHES])),
  ...Object.fromEntries(['.py', '.sh', '.tf', '.hcl', '.yaml', '.cmake'].map((name) => [name, HASHES])),
  '.lua': /^\s*--/,
};
/** Parts that stay whole: literals of 40 characters or more, and addresses. */
const WHOLE = /(["'`/]).{40,}\1?|https?:\/\/\S+/;

/**
 * @param {string} file its extension tells the language
 * @param {string} content
 * @returns {number[]} numbers of the lines that are too long, from 1 on
 */
export function longLines(file, content) {
  const type = extname(file);
  const lines = content.split('\n');
  const isLong = (line) => [...line].length > MAX_COLUMNS;
  if (!lines.some(isLong)) return [];
  const isText =
    type === '.md' ? linesOfProse(lines) : lines.map((line) => COMMENTS[type]?.test(line) ?? false);
  const formatted = /^\.(py|lua|mjs|tsx?|h|cc|cuh?)$/.test(type);
  return lines.flatMap((line, index) => {
    if (!isLong(line)) return [];
    const wrong = isText[index] ? !/https?:\/\/\S+/.test(line) : formatted && !WHOLE.test(line);
    return wrong ? [index + 1] : [];
  });
}

/** True for each line of a page that is neither in a block of code nor part of a table, nor an image or a heading. */
function linesOfProse(lines) {
  let inCode = false;
  return lines.map((line) => {
    const isFence = /^\s*```/.test(line);
    if (isFence) inCode = !inCode;
    return !inCode && !isFence && !/^\s*(\||!\[|#)/.test(line);
  });
}

const SKIPPED =
  /^(node_modules|dist|compiled|contracts\/generated|bench\/results|clients\/python\/zerofleet|native\/(build.*|third_party))\/$|\/(node_modules|dist|\.\w+)\/$|^\.(?!ci)|^openapi\.yaml$/;

/** @param {string[]} paths folders and files from the root */
export function columnProblems(paths) {
  const files = listFiles(paths, (path) =>
    path.endsWith('/')
      ? !SKIPPED.test(path)
      : (extname(path) in COMMENTS || path.endsWith('.md')) && !SKIPPED.test(path),
  );
  return files.flatMap((file) =>
    longLines(file, readFileSync(inRoot(file), 'utf8')).map(
      (line) => `${file}:${line} has more than ${MAX_COLUMNS} columns`,
    ),
  );
}
