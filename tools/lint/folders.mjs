// Two rules of all source folders: those that lie side by side do not depend on each other in a circle, and none grows too large to
// be read. Files are checked by dependency-cruiser (TypeScript) and by compilers (headers).
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { listFiles } from '../bootstrap/fingerprint.mjs';
import { inRoot } from '../bootstrap/paths.mjs';

const MAX_FILES = 30;
const IMPORT = /(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g;
/** Tests and their helpers reach everywhere; bench/ and test/ are made of nothing else. */
const isProduct = (file) => !/\.test\.ts$|\/testing\/|^(test|bench)\//.test(file);

/**
 * Circles among the folders of each folder.
 * @param {[from: string, to: string][]} imports of files, by paths from the root
 * @returns {string[]} one line per circle
 */
export function folderCircles(imports) {
  const siblings = new Map();
  for (const [from, to] of imports) {
    const [a, b] = [from.split('/').slice(0, -1), to.split('/').slice(0, -1)];
    let depth = 0;
    while (depth < a.length && a[depth] === b[depth]) depth++;
    // One of them lies in the folder that they share: that is no folder beside another.
    if (depth === a.length || depth === b.length) continue;
    const parent = a.slice(0, depth).join('/');
    if (!siblings.has(parent)) siblings.set(parent, new Map());
    const edges = siblings.get(parent);
    if (!edges.has(a[depth])) edges.set(a[depth], new Map());
    edges.get(a[depth]).set(b[depth], `${from} -> ${to}`);
  }
  return [...siblings].flatMap(([parent, edges]) => {
    const circle = circleOf(edges);
    return circle ? [`folders of ${parent || 'the project'} in a circle:\n    ${circle.join('\n    ')}`] : [];
  });
}

/** The imports that close a circle; null when there is none. */
function circleOf(edges) {
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
  const accept = (path) => path.endsWith('/') || /\.(ts|mjs|lua)$/.test(path);
  const files = listFiles(rooms, accept);
  const products = files.filter((file) => file.endsWith('.ts') && isProduct(file));
  const imports = products.flatMap((file) =>
    [...readFileSync(inRoot(file), 'utf8').matchAll(IMPORT)].map(([, path]) => [
      file,
      posix.join(posix.dirname(file), path),
    ]),
  );
  return [...folderCircles(imports), ...largeFolders(files)];
}
