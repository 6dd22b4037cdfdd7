// Two rules of all source folders: sibling folders have no dependency cycles, and no folder has too many files. Cycles of files
// are checked by dependency-cruiser (TypeScript) and by compilers (headers).
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { listFiles } from '../bootstrap/fingerprint.mjs';
import { inRoot } from '../bootstrap/paths.mjs';

const MAX_FILES = 30;
const IMPORT = /(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g;
/** Tests and their helpers may import anything; bench/ and test/ contain nothing else. */
const isProduct = (file) => !/\.test\.ts$|\/testing\/|^(test|bench)\//.test(file);

/**
 * Dependency cycles among the subfolders of each folder.
 * @param {[from: string, to: string][]} imports of files, by paths from the root
 * @returns {string[]} one line per cycle
 */
export function folderCycles(imports) {
  const siblings = new Map();
  for (const [from, to] of imports) {
    const [a, b] = [from.split('/').slice(0, -1), to.split('/').slice(0, -1)];
    let depth = 0;
    while (depth < a.length && a[depth] === b[depth]) depth++;
    // One of the files lies directly in the common folder, so no sibling folder depends on another.
    if (depth === a.length || depth === b.length) continue;
    const parent = a.slice(0, depth).join('/');
    if (!siblings.has(parent)) siblings.set(parent, new Map());
    const edges = siblings.get(parent);
    if (!edges.has(a[depth])) edges.set(a[depth], new Map());
    edges.get(a[depth]).set(b[depth], `${from} -> ${to}`);
  }
  return [...siblings].flatMap(([parent, edges]) => {
    const cycle = cycleOf(edges);
    return cycle
      ? [`folders of ${parent || 'the project'} form a dependency cycle:\n    ${cycle.join('\n    ')}`]
      : [];
  });
}

/** The imports that form a cycle; null if there is none. */
function cycleOf(edges) {
  const done = new Set();
  const visit = (folder, path) => {
    const at = path.findIndex((step) => step.folder === folder);
    if (at >= 0) return path.slice(at).map((step) => step.by);
    if (done.has(folder)) return null;
    for (const [next, by] of edges.get(folder) ?? []) {
      const found = visit(next, [...path, { folder, by }]);
      if (found) return found;
    }
    done.add(folder);
    return null;
  };
  for (const folder of edges.keys()) {
    const found = visit(folder, []);
    if (found) return found;
  }
  return null;
}

/** @param {string[]} files @returns {string[]} one line per folder with too many files */
export function largeFolders(files) {
  const counts = new Map();
  for (const file of files) counts.set(posix.dirname(file), (counts.get(posix.dirname(file)) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > MAX_FILES)
    .map(([folder, count]) => `${folder} has ${count} files: the limit is ${MAX_FILES}`);
}

/** @param {string[]} rooms top-level folders with TypeScript */
export function folderProblems(rooms) {
  const accept = (path) => path.endsWith('/') || /\.(ts|mjs|lua)$/.test(path);
  const files = listFiles(rooms, accept);
  const products = files.filter((file) => file.endsWith('.ts') && isProduct(file));
  const imports = products.flatMap((file) =>
    [...readFileSync(inRoot(file), 'utf8').matchAll(IMPORT)].map(([, path]) => [
      file,
      posix.join(posix.dirname(file), path),
    ]),
  );
  return [...folderCycles(imports), ...largeFolders(files)];
}
