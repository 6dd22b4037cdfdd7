import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { pathToFileURL } from 'node:url';
import { capture } from '../bootstrap/command.mjs';
import { SetupError } from '../bootstrap/errors.mjs';
import { listFiles } from '../bootstrap/fingerprint.mjs';
import { compiledDir, inRoot } from '../bootstrap/paths.mjs';
import { ensureNative } from '../bootstrap/setup.mjs';
import { runPool } from './pool.mjs';
import { TapReader } from './tap-output.mjs';

/** Files of one folder that share a process: enough to load common imports only a few times, few enough to spread over the cores. */
const FILES_PER_PROCESS = 12;
const PROCESS_TIMEOUT_MS = 1_800_000;
/** Processes beyond the number of cores: tests partly wait for processes and timers, deep ones more than half of their time. */
const BEYOND_CORES = { quick: 1, deep: 2 };
const KEPT_LINES = 60;
/** Tests of two to seven minutes, the longest first. They begin first: one that began last would run on alone. */
const LONGEST = [
  'test/chaos/chaos.deep',
  'test/e2e/slurm.deep',
  'test/docs/fine-tuning.deep',
  'test/e2e/adapters.deep',
  'test/docs/guide.deep',
  'platform/redis/failover.deep',
  'test/docs/slurm.deep',
];

/**
 * Test files of one of the two commands, selected by name: compiled ones, and those of the bootstrap, which runs without
 * the compiler.
 * @param {'quick' | 'deep'} kind
 * @param {string[]} paths parts of their paths, without folder of the compiler and extension; all when empty
 * @throws SetupError when there is none
 */
function testFiles(kind, paths) {
  const isTest = (path) => /^(compiled\/.*\.test\.js|tools\/.*\.test\.mjs)$/.test(path);
  const isOfKind = (path) => /\.deep\.test\.m?js$/.test(path) === (kind === 'deep');
  const wanted = paths.map((path) => path.replace(/\.[a-z]+$/, ''));
  const isWanted = (path) => wanted.length === 0 || wanted.some((part) => path.includes(part));
  const accept = (path) => path.endsWith('/') || (isTest(path) && isOfKind(path) && isWanted(path));
  const files = listFiles([compiledDir, 'tools'], accept);
  if (files.length === 0) throw new SetupError(`no ${kind} test's path contains ${paths.join(' or ')}`);
  return files;
}

/** Path of a test's source without extension. */
const nameOf = (file) => file.replace(`${compiledDir}/`, '').replace(/\.test\.m?js$/, '');
const roomOf = (file) => nameOf(file).split('/')[0];

/** Place of a process among LONGEST, behind them when none of its files is there. */
function placeOf(files) {
  const places = files.map((file) => LONGEST.indexOf(nameOf(file))).filter((place) => place >= 0);
  return Math.min(LONGEST.length, ...places);
}

/**
 * Test files of each process. Tests of the whole system (test/) have their own process and come before others, since they take
 * longer; others share one with their neighbours.
 */
function groupsOf(files) {
  const alone = files.filter((file) => roomOf(file) === 'test');
  const groups = [];
  for (const file of files) {
    if (alone.includes(file)) continue;
    const last = groups.at(-1);
    if (last && roomOf(last[0]) === roomOf(file) && last.length < FILES_PER_PROCESS) last.push(file);
    else groups.push([file]);
  }
  return [...alone.map((file) => [file]), ...groups].sort((a, b) => placeOf(a) - placeOf(b));
}

/** Prints one line per finished file, the full output of a failed one, and each skipped test with its reason. */
function printFile({ file, ok, output, skipped, times }) {
  for (const test of skipped) console.log(`  skipped ${test}`);
  const processor = times.cpu_s === null ? '' : ` (processor ${times.cpu_s.toFixed(1)} s)`;
  console.log(`  ${ok ? 'ok    ' : 'FAILED'} ${nameOf(file)} ${times.wall_s.toFixed(1)} s${processor}`);
  if (!ok) console.log(output.join('\n'));
}

/** Totals of one process. A process without a summary, or with a bad exit code although no test failed, counts as a failure. */
function totalsOf(files, reader, code) {
  const { passed, failed, skipped } = reader.totals ?? { passed: 0, failed: 0, skipped: 0 };
  const isBroken = reader.totals === null || (code !== 0 && failed === 0);
  if (isBroken || reader.rest.some((line) => line.startsWith('not ok'))) {
    console.log(`  FAILED a process that ended with code ${code}, with the tests ${files.join(' ')}`);
    console.log(reader.rest.slice(-KEPT_LINES).join('\n'));
  }
  return { passed, failed: isBroken ? failed + 1 : failed, skipped };
}

/**
 * Runs test files in one process.
 * @param {string[]} files
 * @param {(result: object) => void} report called with the result of each file; see TapReader
 * @returns {Promise<{passed: number, failed: number, skipped: number}>} assertions
 */
export async function runGroup(files, report) {
  const reader = new TapReader(report);
  const program = inRoot('tools', 'test', 'file-group.mjs');
  const { code } = await capture([process.execPath, '--enable-source-maps', program, ...files], {
    timeout_ms: PROCESS_TIMEOUT_MS,
    onLine: (line) => reader.take(line),
  });
  return totalsOf(files, reader, code);
}

/** Prepares deep tests: they need workers on emulated GPUs, a real S3 server, a real Slurm, and curl for the guide. apt can run one command at a time. */
async function prepareDeepTests() {
  await ensureNative('emulated', 'native core on an emulated GPU: building');
  const testing = (name) => pathToFileURL(inRoot(compiledDir, 'platform', 'testing', name)).href;
  const { ensurePrograms } = await import(testing('programs.js'));
  await ensurePrograms(['curl'], ['curl', 'ca-certificates']);
  const { whyNoRadosgw } = await import(testing('radosgw.js'));
  const { whyNoSlurm } = await import(testing('slurm.js'));
  for (const [tests, whyNot] of [
    ['S3', whyNoRadosgw],
    ['Slurm', whyNoSlurm],
  ]) {
    const reason = await whyNot();
    if (reason) console.log(`  ${tests} tests are skipped: ${reason}`);
  }
}

/**
 * Runs compiled tap tests in several processes.
 * @param {'quick' | 'deep'} kind
 * @param {string[]} paths as in `testFiles`
 * @param {import('./time-limit.mjs').TimeLimit} limit
 * @returns {Promise<{passed: number, failed: number, skipped: number}[]>} assertions, one entry per process. The times of all files are
 * left in `.build/test-times.json`
 */
export async function runTypescriptTests(kind, paths, limit) {
  const files = testFiles(kind, paths);
  if (kind === 'deep') await prepareDeepTests();
  const times = [];
  const report = (result) => {
    times.push(result.times);
    printFile(result);
  };
  const results = await runPool(
    groupsOf(files).map((group) => limit.within(group.join(' '), () => runGroup(group, report))),
    availableParallelism() + BEYOND_CORES[kind],
  );
  mkdirSync(inRoot('.build'), { recursive: true });
  writeFileSync(inRoot('.build', 'test-times.json'), `${JSON.stringify(times)}\n`);
  return results;
}
