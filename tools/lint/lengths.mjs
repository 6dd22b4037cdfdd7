// Files have at most 300 lines. Biome limits functions of TypeScript to 60 lines (biome.json).
import { readFileSync } from 'node:fs';
import { listFiles } from '../bootstrap/fingerprint.mjs';
import { inRoot } from '../bootstrap/paths.mjs';

const MAX_LINES = 300;
const SOURCES = /\.(tsx?|mjs|lua|py|h|cc|cuh?)$/;
/** Folders that are not ours, or that a program writes. */
const SKIPPED =
  /^(dist|compiled|contracts\/generated|native\/(build.*|third_party))\/$|\/?(node_modules|\.\w+|__pycache__)\/$/;
/** Generated files among others. */
const GENERATED = /^clients\/python\/zerofleet\/(operations|schemas)\.py$/;

/** @param {[file: string, content: string][]} files @returns {string[]} one line per file that is too long */
export function longFiles(files) {
  return files
    .map(([file, content]) => [file, content.split('\n').length - 1])
    .filter(([, lines]) => lines > MAX_LINES)
    .map(([file, lines]) => `${file} has ${lines} lines: at most ${MAX_LINES}; split it by subject`);
}

/** @param {string[]} paths folders and files from the root */
export function lengthProblems(paths) {
  const files = listFiles(paths, (path) =>
    path.endsWith('/') ? !SKIPPED.test(path) : SOURCES.test(path) && !GENERATED.test(path),
  );
  return longFiles(files.map((file) => [file, readFileSync(inRoot(file), 'utf8')]));
}
