import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { SetupError } from '../../bootstrap/errors.mjs';
import { inRoot, root } from '../../bootstrap/paths.mjs';
import { sourceGraph } from '../../graph/source-graph.mjs';
import { DECLARED_EDGES, INFRA_SUITE, NATIVE_SUITES } from './edges.mjs';
import { Reach } from './select.mjs';

const DEEP_TEST = /\.deep\.test\.(ts|mjs)$/;
const ANY_TEST = /\.test\.(ts|mjs)$/;

/** @throws SetupError with git's message */
function git(cwd, ...args) {
  try {
    return execFileSync('git', args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 28, stdio: 'pipe' });
  } catch (error) {
    throw new SetupError(`git ${args.join(' ')}: ${String(error.stderr || error.message).trim()}`);
  }
}

const paths = (...args) =>
  git(...args, '-z')
    .split('\0')
    .filter(Boolean);
const untracked = (dir) => paths(dir, 'ls-files', '--others', '--exclude-standard');

/**
 * Files that differ between a commit and the working tree, untracked files among them.
 * @param {string} revision
 * @param {string} [dir] of the repository
 * @returns {string[]}
 * @throws SetupError when there is no such revision
 */
export function changedSince(revision, dir = root) {
  git(dir, 'rev-parse', '--verify', `${revision}^{commit}`);
  return [...paths(dir, 'diff', '--name-only', '--no-renames', revision), ...untracked(dir)];
}

/**
 * The newest commit over `hours` old among the first parents. Commits of merged branches do not count: their changes
 * came to this branch with the merge, which may be newer.
 * @param {number} hours
 * @param {string} [dir] of the repository
 * @returns {string | null} null when there is none, the clone is shallow, or git cannot read it
 */
export function commitBefore(hours, dir = root) {
  const end = `--before=${Math.round(Date.now() / 1000 - hours * 3600)}`;
  try {
    if (git(dir, 'rev-parse', '--is-shallow-repository').trim() === 'true') return null;
    return git(dir, 'log', '-1', '--first-parent', '--format=%H', end).trim() || null;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.log(error.message);
    return null;
  }
}

export const wasDeleted = (file) => !existsSync(inRoot(file));

/**
 * The files that each deep suite of this checkout needs.
 * @param {string[]} [changed] adds deleted files to the graph
 * @returns {Reach}
 */
export function reachOfSuites(changed = []) {
  const files = [...new Set([...paths(root, 'ls-files'), ...untracked(root), ...changed])];
  // The set-up names all sources that it builds. Which suites depend on a build is declared instead.
  const isRead = (file) => !file.startsWith('tools/bootstrap/') && !wasDeleted(file);
  const read = (file) => (isRead(file) ? readFileSync(inRoot(file), 'utf8') : '');
  const suites = [...NATIVE_SUITES, INFRA_SUITE];
  const graph = sourceGraph(files, read, DECLARED_EDGES, suites);
  const tests = files.filter((file) => ANY_TEST.test(file) && !wasDeleted(file));
  return new Reach(
    graph,
    [...suites, ...tests.filter((file) => DEEP_TEST.test(file))],
    tests.filter((file) => !DEEP_TEST.test(file)),
  );
}
