// Two rules of all source folders. Folders side by side do not depend on each other in a cycle, and no folder has too
// many files. dependency-cruiser finds cycles of TypeScript files, compilers those of headers.
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { listFiles } from '../bootstrap/fingerprint.mjs';
import { inRoot } from '../bootstrap/paths.mjs';
import { importsOf } from '../graph/references.mjs';

const MAX_FILES = 30;
/** Tests and their helpers reach everywhere; bench/ and test/ are made of nothing else. */
const isProduct = (file) => !/\.test\.ts$|\/testing\/|^(test|bench)\//.test(file);

/**
 * Dependency cycles among folders that lie in one folder.
 * @param {[from: string, to: string][]} imports of files, by paths from the root
 * @param {{withFiles?: boolean}} [options] `withFiles`: files beside folders count as one more folder
 * @returns {string[]} one line per cycle, with an import for each step
 */
export function folderCycles(imports, { withFiles = false } = {}) {
  const graphs = new Map();
  for (const [from, to] of imports) {
    const [a, b] = [from.split('/').slice(0, -1), to.split('/').slice(0, -1)];
    let depth = 0;
    while (depth < a.length && a[depth] === b[depth]) depth++;
    const [start, end] = [a[depth] ?? '.', b[depth] ?? '.'];
    if (start === end || (!withFiles && (start === '.' || end === '.'))) continue;
    const parent = a.slice(0, depth).join('/');
    if (!graphs.has(parent)) graphs.set(parent, new Map());
    const edges = graphs.get(parent);
    if (!edges.has(start)) edges.set(start, new Map());
    edges.get(start).set(end, `${from} -> ${to}`);
  }
  return [...graphs].flatMap(([parent, edges]) => {
    const known = new Set();
    return [...edges.keys()].flatMap((start) => {
      const cycle = known.has(start) ? null : cycleThrough(start, edges);
      if (cycle === null) return [];
      for (const folder of cycle) known.add(folder);
      const steps = cycle.slice(1).map((to, index) => edges.get(cycle[index]).get(to));
      return [`folders of ${parent || 'the project'} in a cycle: ${steps.join('; ')}`];
    });
  });
}

/** The shortest way along edges from a folder back to itself, or null. */
function cycleThrough(start, edges) {
  const ways = [[start]];
  const seen = new Set();
  for (const way of ways) {
    for (const next of edges.get(way.at(-1))?.keys() ?? []) {
      if (next === start) return [...way, start];
      if (!seen.has(next)) ways.push([...way, next]);
      seen.add(next);
    }
  }
  return null;
}

/** @param {string[]} files @returns {string[]} one line per folder that has too many */
export function largeFolders(files) {
  const counts = new Map();
  for (const file of files) counts.set(posix.dirname(file), (counts.get(posix.dirname(file)) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > MAX_FILES)
    .map(([folder, count]) => `${folder} has ${count} files: at most ${MAX_FILES} lie in one folder`);
}

/** @param {string[]} rooms top-level folders with TypeScript */
export function folderProblems(rooms) {
  const accept = (path) => path.endsWith('/') || /\.(tsx?|mjs|lua)$/.test(path);
  const files = listFiles(rooms, accept);
  const products = files.filter((file) => file.endsWith('.ts') && isProduct(file));
  const imports = products.flatMap((file) =>
    importsOf(file, readFileSync(inRoot(file), 'utf8')).map((path) => [file, path]),
  );
  return [...folderCycles(imports), ...largeFolders(files)];
}
