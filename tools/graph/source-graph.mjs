import { posix } from 'node:path';
import { compiledDir } from '../bootstrap/paths.mjs';
import { IS_CODE, importsOf, includedHeader, namedPaths } from './references.mjs';

const IS_NATIVE = /\.(cc|h|cu|cuh)$/;
const INCLUDE_FOLDERS = ['native', 'native/third_party'];

/**
 * @typedef {Map<string, Set<string>>} Graph maps each node to the nodes that it needs. Nodes are paths from the root,
 * and suites
 */
/** @typedef {{from: RegExp, to: RegExp}} DeclaredEdge */

/** Folders that mirror the tree: compiled tests, and bundled programs. */
const MIRROR = new RegExp(`^(${compiledDir}|dist)/`);

/** The source of a path. Imports name the compiled file, programPath() the source without extension. */
function sourceOf(path, known) {
  const source = path.replace(MIRROR, '');
  const name = source.replace(/\.js$/, '');
  return [source, `${name}.ts`, `${name}.tsx`].find((candidate) => known.has(candidate));
}

function codeEdges(file, text, files, known) {
  const named = namedPaths(file, text);
  const found = [...importsOf(file, text), ...named.files].map((path) => sourceOf(path, known));
  const isBelow = (path) => named.folders.some((folder) => path.startsWith(`${folder}/`));
  // A folder is read for its data. Its code runs only where something imports or starts it.
  const read = named.folders.length > 0 ? files.filter((path) => !IS_CODE.test(path) && isBelow(path)) : [];
  return [...found.filter((path) => path !== undefined && path !== file), ...read];
}

function includeEdges(file, text, known) {
  const headers = text.split('\n').map(includedHeader).filter(Boolean);
  return headers.flatMap((header) =>
    [posix.dirname(file), ...INCLUDE_FOLDERS]
      .map((folder) => posix.join(folder, header))
      .filter((path) => known.has(path)),
  );
}

/**
 * Builds the graph from the contents of files and from declared edges.
 * @param {string[]} files paths from the root
 * @param {(file: string) => string} read returns a file's contents
 * @param {DeclaredEdge[]} declared edges that the contents do not show
 * @param {string[]} [suites] nodes that are no files; they have declared edges only
 * @returns {Graph}
 */
export function sourceGraph(files, read, declared, suites = []) {
  const known = new Set(files);
  const graph = new Map(suites.map((name) => [name, new Set()]));
  for (const file of files) {
    let edges = [];
    if (IS_CODE.test(file)) edges = codeEdges(file, read(file), files, known);
    else if (IS_NATIVE.test(file)) edges = includeEdges(file, read(file), known);
    graph.set(file, new Set(edges));
  }
  for (const { from, to } of declared) {
    const targets = files.filter((file) => to.test(file));
    for (const [node, edges] of graph) if (from.test(node)) for (const file of targets) edges.add(file);
  }
  return graph;
}

/**
 * @param {Graph} graph
 * @param {string} start
 * @returns {Map<string, number>} distance in edges of each node that `start` needs, and of `start` itself (0)
 */
export function distancesFrom(graph, start) {
  const distances = new Map([[start, 0]]);
  for (const [node, distance] of distances)
    for (const next of graph.get(node) ?? []) if (!distances.has(next)) distances.set(next, distance + 1);
  return distances;
}
