import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { pathToFileURL } from 'node:url';
import { capture } from '../bootstrap/command.mjs';
import { inRoot } from '../bootstrap/paths.mjs';
import { ensureNative } from '../bootstrap/setup.mjs';
import { compiledOf } from './compiled.mjs';
import { runPool } from './pool.mjs';
import { TapReader } from './tap-output.mjs';

/**
 * Files of one folder that share a process: enough to load common imports only a few times, few enough to spread over
 * the cores.
 */
const FILES_PER_PROCESS = 12;
const PROCESS_TIMEOUT_MS = 1_800_000;
/**
 * Processes beyond the number of cores: tests partly wait for processes and timers, deep ones more than half of their
 * time.
 */
const BEYOND_CORES = { quick: 1, deep: 2 };
const KEPT_LINES = 60;
/** Loads a module of platform/testing/. */
const helper = (name) => import(pathToFileURL(inRoot(compiledOf(`platform/testing/${name}.ts`))).href);

const folderOf = (file) =>
  file
    .split('/')
    .slice(0, file.startsWith('test/') ? 2 : 1)
    .join('/');
const isWholeSystem = (file) => file.startsWith('test/');
/** Tests whose times are those of the ranks that they start: these are spread over the cores. */
const isAlone = (file) => /^test\/(e2e|sessions|reinforcement)\//.test(file);

/**
 * Quick test files of each process. Neighbours share one. Tests of the whole system come before others, since they take
 * longer.
 */
function groupsOf(files) {
  const groups = [];
  for (const file of files.filter((path) => !isAlone(path))) {
    const last = groups.at(-1);
    if (last && folderOf(last[0]) === folderOf(file) && last.length < FILES_PER_PROCESS) last.push(file);
    else groups.push([file]);
  }
  groups.sort(([a], [b]) => isWholeSystem(b) - isWholeSystem(a));
  return [...files.filter(isAlone).map((file) => [file]), ...groups];
}

/** Prints one line per finished file, the full output of a failed one, and each skipped test with its reason. */
function printFile({ file, ok, output, skipped, times }) {
  for (const test of skipped) console.log(`  skipped ${test}`);
  const processor = times.cpu_s === null ? '' : ` (processor ${times.cpu_s.toFixed(1)} s)`;
  console.log(`  ${ok ? 'ok    ' : 'FAILED'} ${file} ${times.wall_s.toFixed(1)} s${processor}`);
  if (!ok) console.log(output.join('\n'));
}

/**
 * Totals of one process. A process without a summary, or with a bad exit code although no test failed, counts as a
 * failure.
 */
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
 * @param {string[]} files sources
 * @param {(result: object) => void} report called with the result of each file; see TapReader
 * @returns {Promise<import('./suite-runs.mjs').Result>} assertions
 */
export async function runGroup(files, report) {
  const reader = new TapReader(report);
  const program = inRoot('tools', 'test', 'file-group.mjs');
  const { code, output } = await capture(
    [process.execPath, '--enable-source-maps', program, ...files.map(compiledOf)],
    { timeout_ms: PROCESS_TIMEOUT_MS, onLine: (line) => reader.take(line) },
  );
  return { ...totalsOf(files, reader, code), output };
}

/** Builds the control plane of Kubernetes once. Tests that need it say `not run` where it can't be built. */
async function prepareKubernetes() {
  const { whyNoKubernetes } = await helper('kubernetes/control-plane');
  if (await whyNoKubernetes())
    await capture(['tools/test/kubernetes/build.sh'], { onLine: (line) => console.log(`  ${line}`) });
  return whyNoKubernetes();
}

/**
 * Prepares what deep tests need: curl for the guide, a real S3 server, a real Slurm; apt can run one command at a time.
 * The addon with an emulated GPU and the control plane of Kubernetes take minutes to build, so each is built only for
 * files that mention it.
 */
async function prepareDeepTests(files) {
  const mentions = (word) => files.some((file) => readFileSync(inRoot(file), 'utf8').includes(word));
  if (mentions('emulated')) await ensureNative('emulated', 'native core on an emulated GPU: building');
  const { ensurePrograms } = await helper('programs');
  await ensurePrograms(['curl'], ['curl', 'ca-certificates']);
  const { whyNoRadosgw } = await helper('radosgw');
  const { whyNoSlurm } = await helper('slurm');
  for (const [tests, whyNot] of [
    ['S3', whyNoRadosgw],
    ['Slurm', whyNoSlurm],
    ...(mentions('whyNoKubernetes') ? [['Kubernetes', prepareKubernetes]] : []),
  ]) {
    const reason = await whyNot();
    if (reason) console.log(`  ${tests} tests are skipped: ${reason}`);
  }
}

/**
 * Runs compiled tap tests in several processes. The times of all files are left in `.build/test-times.json`.
 * @param {'quick' | 'deep'} kind deep tests have a process each
 * @param {string[]} files sources, in the order in which they begin
 * @param {import('./suite-runs.mjs').SuiteRuns} runs
 */
export async function runTypescriptTests(kind, files, runs) {
  if (kind === 'deep' && runs.hasTimeFor(0)) await prepareDeepTests(files);
  const times = [];
  const report = (result) => {
    times.push(result.times);
    printFile(result);
  };
  const groups = kind === 'deep' ? files.map((file) => [file]) : groupsOf(files);
  await runPool(
    groups.map((group) => runs.suite(group.join(' '), () => runGroup(group, report))),
    availableParallelism() + BEYOND_CORES[kind],
  );
  mkdirSync(inRoot('.build'), { recursive: true });
  writeFileSync(inRoot('.build', 'test-times.json'), `${JSON.stringify(times)}\n`);
}
