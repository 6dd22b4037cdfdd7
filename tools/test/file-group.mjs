// The process for running test files sequentially: their common imports are loaded once.
//
//   node tools/test/file-group.mjs dist/a/x.test.js dist/a/y.test.js
//
// Its output is TAP with one subtest per file, each followed by a comment with the file's times (see tap-output.mjs).
import { readFileSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Methods that test files call on tap's root; here they act on the file's subtest. */
const ROOT_METHODS = ['test', 'before', 'beforeEach', 'after', 'afterEach', 'teardown', 'setTimeout'];
/** Only for what hangs: a loaded machine takes four times the time of a quiet one. */
const FILE_TIMEOUT_MS = 1_500_000;
const EXIT_TIMEOUT_MS = Number(process.env.ZF_TEST_LEAVE_MS ?? 60_000);
const CLOCK_TICKS_PER_SECOND = 100;

const files = process.argv.splice(2);
// tap names the directories of tests after the program and its arguments: this makes the names short and unique per
// process.
process.argv[1] = `tests-${process.pid}`;
// For test files that run themselves again in a child process.
process.env.TAP_TIMEOUT = String(FILE_TIMEOUT_MS / 1000);
const { default: t } = await import('tap');

/** CPU seconds of this process and of its exited children (proc(5): utime to cstime). */
function processorSeconds() {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const [utime, stime, cutime, cstime] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15);
  return (Number(utime) + Number(stime) + Number(cutime) + Number(cstime)) / CLOCK_TICKS_PER_SECOND;
}

/** Restores the environment, so that changes by one file do not affect the next. */
function restoreEnvironment(before) {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
}

async function runFile(test, file) {
  const environment = { ...process.env };
  const cpuS = process.platform === 'linux' ? processorSeconds() : null;
  const started = performance.now();
  let loaded = started;
  await test(file, { timeout: FILE_TIMEOUT_MS }, async (child) => {
    for (const name of ROOT_METHODS) t[name] = child[name].bind(child);
    await import(pathToFileURL(resolve(file)).href);
    loaded = performance.now();
  });
  restoreEnvironment(environment);
  const seconds = (ms) => Number((ms / 1000).toFixed(3));
  const times = {
    file,
    wall_s: seconds(performance.now() - started),
    load_s: seconds(loaded - started),
    cpu_s: cpuS === null ? null : Number((processorSeconds() - cpuS).toFixed(2)),
  };
  t.comment(`times ${JSON.stringify(times)}`);
}

const root = Object.fromEntries(ROOT_METHODS.map((name) => [name, t[name]]));
t.setTimeout(0);
for (const file of files) await runFile(root.test.bind(t), file);
Object.assign(t, root);
// An open timer or connection of a test would keep the process alive forever. The output then names it.
setTimeout(() => {
  const open = process.getActiveResourcesInfo().join(', ');
  // Printed after tap's own output.
  process.once('exit', () => writeSync(1, `not ok - still open long after the last test: ${open}\n`));
  process.exit(1);
}, EXIT_TIMEOUT_MS).unref();
