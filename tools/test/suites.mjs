// The test suites: files of TypeScript tests, presets of native tests, and infra.
import { readdirSync } from 'node:fs';
import { SetupError } from '../bootstrap/errors.mjs';
import { listFiles } from '../bootstrap/fingerprint.mjs';
import { compiledDir, root } from '../bootstrap/paths.mjs';
import { INFRA_SUITE, NATIVE_SUITES } from './affected/edges.mjs';

/** @typedef {{name: string, part: 'native' | 'infra' | 'typescript'}} Suite */

const PARTS = ['native', 'infra', 'typescript'];
/** Tests of two to seven minutes, the longest first. They begin first: one that began last would run on alone. */
const LONGEST = [
  'test/chaos/chaos.deep',
  'test/e2e/slurm.deep',
  'test/kubernetes/training.deep',
  'test/docs/fine-tuning.deep',
  'test/e2e/adapters.deep',
  'test/docs/guide.deep',
  'platform/redis/failover.deep',
  'test/docs/slurm.deep',
];
const NO_SOURCES = /(^|\/)(node_modules|build[^/]*)\/$/;
const IS_TEST = /\.test\.(ts|mjs)$/;
const IS_DEEP = /\.deep\.test\.(ts|mjs)$/;

/** Order: LONGEST, tests of the whole system, others. */
function orderOf(file) {
  const index = LONGEST.findIndex((name) => file.startsWith(`${name}.`));
  if (index >= 0) return index;
  return file.startsWith('test/') ? LONGEST.length : LONGEST.length + 1;
}

/**
 * Test files of TypeScript, and those of the bootstrap, which runs without the compiler.
 * @param {'quick' | 'deep'} kind
 * @param {string[]} [words] parts of their paths, with or without extension; all files when empty
 * @returns {string[]} sources, those that run longest first
 * @throws SetupError when there is none
 */
export function testFiles(kind, words = []) {
  const folders = readdirSync(root).filter((name) => !name.startsWith('.') && name !== compiledDir);
  const wanted = words.map((word) => word.replace(/\.[a-z]+$/, ''));
  const isChosen = (path) =>
    IS_TEST.test(path) &&
    IS_DEEP.test(path) === (kind === 'deep') &&
    (wanted.length === 0 || wanted.some((part) => path.includes(part)));
  const files = listFiles(folders, (path) => (path.endsWith('/') ? !NO_SOURCES.test(path) : isChosen(path)));
  if (files.length === 0) throw new SetupError(`no ${kind} test's path contains ${words.join(' or ')}`);
  return files.sort((a, b) => orderOf(a) - orderOf(b));
}

/**
 * The deep suites, in the order in which they begin.
 * @param {string[]} words names of parts, and parts of paths of TypeScript tests; all suites when empty
 * @returns {Suite[]}
 * @throws SetupError when there is none
 */
export function deepSuites(words = []) {
  const paths = words.filter((word) => !PARTS.includes(word));
  const isAsked = (part) => words.length === 0 || words.includes(part);
  const files = isAsked('typescript') || paths.length > 0 ? testFiles('deep', paths) : [];
  return [
    ...(isAsked('native') ? NATIVE_SUITES.map((name) => ({ name, part: 'native' })) : []),
    ...(isAsked('infra') ? [{ name: INFRA_SUITE, part: 'infra' }] : []),
    ...files.map((name) => ({ name, part: 'typescript' })),
  ];
}
