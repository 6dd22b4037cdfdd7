// How the folders of native/ are cut: none has too many files, and at no level do folders include each other in a circle.
import { dirname, join } from 'node:path/posix';

/** Folders of data that a script writes. */
const EXEMPT = /^test\/golden$/;
const MAX_FILES = 30;

/**
 * Folders with more files than a reader can survey.
 * @param {string[]} files relative to native/
 * @returns {string[]} one line per folder
 */
export function crowdedFolders(files) {
  const counts = new Map();
  for (const file of files) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
  return [...counts]
    .filter(([folder, count]) => count > MAX_FILES && !EXEMPT.test(folder))
    .map(
      ([folder, count]) =>
        `native/${folder} has ${count} files, more than ${MAX_FILES}: divide it by subject`,
    );
}

/**
 * The step of one include where the paths of the two files part: the folder in which both lie, and which of its entries includes which.
 * Files that lie in the folder itself count as one entry, ".".
 */
function stepOf(from, to) {
  const left = dirname(from).split('/');
  const right = dirname(to).split('/');
  let depth = 0;
  while (depth < left.length && left[depth] === right[depth]) depth += 1;
  if (depth === left.length && depth === right.length) return null;
  return {
    parent: left.slice(0, depth).join('/'),
    from: left[depth] ?? '.',
    to: right[depth] ?? '.',
  };
}

/** The shortest way along edges from one node back to itself, or null. */
function circleThrough(start, edges) {
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

/**
 * Circles among folders that lie in one folder, with an include for each step.
 * @param {{file: string, header: string}[]} includes paths relative to native/, of files that exist
 * @returns {string[]} one line per circle, each found once
 */
export function folderCircles(includes) {
  const graphs = new Map();
  for (const { file, header } of includes) {
    const step = stepOf(file, header);
    if (step === null) continue;
    if (!graphs.has(step.parent)) graphs.set(step.parent, new Map());
    const edges = graphs.get(step.parent);
    if (!edges.has(step.from)) edges.set(step.from, new Map());
    edges.get(step.from).set(step.to, `${file} includes ${header}`);
  }
  const problems = [];
  for (const [parent, edges] of graphs) {
    const known = new Set();
    for (const start of edges.keys()) {
      const circle = known.has(start) ? null : circleThrough(start, edges);
      if (circle === null) continue;
      for (const node of circle) known.add(node);
      const steps = circle.slice(1).map((to, index) => edges.get(circle[index]).get(to));
      const where = join('native', parent);
      problems.push(`${where}: its folders ${circle.join(' → ')} form a circle: ${steps.join('; ')}`);
    }
  }
  return problems;
}
