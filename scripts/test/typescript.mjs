import { pathToFileURL } from 'node:url';
import { capture } from '../bootstrap/command.mjs';
import { fingerprint, listFiles, stampMatches, writeStamp } from '../bootstrap/fingerprint.mjs';
import { inRoot } from '../bootstrap/paths.mjs';
import { ensureNative } from '../bootstrap/setup.mjs';

const TOTALS = /^# \{ total: \d+, pass: (\d+)(?:, fail: (\d+))?(?:, skip: (\d+))?(?:, todo: \d+)? \}/m;
const FILE_RESULT = /^(ok|not ok) \d+ - (?:dist\/)?(\S+)(.*)$/;
const SKIPPED = /^\s+ok \d+ - (.*) # SKIP ?(.*)$/i;

/** Prints one line for each finished file; what a failed one said in full; each skipped test with its reason. */
function filePrinter() {
  let block = [];
  return (line) => {
    const result = FILE_RESULT.exec(line);
    const skip = SKIPPED.exec(line);
    if (skip) console.log(`  skipped ${skip[1].split(' # ')[0]}: ${skip[2]}`);
    if (!result) {
      block.push(line);
      return;
    }
    const [, status, file, rest] = result;
    const time = /time=([\d.]+)ms/.exec(rest)?.[1];
    const took = time ? ` ${(Number(time) / 1000).toFixed(1)} s` : '';
    console.log(`  ${status === 'ok' ? 'ok    ' : 'FAILED'} ${file.replace(/\.js$/, '.ts')}${took}`);
    if (status !== 'ok') console.log(block.join('\n'));
    block = [];
  };
}

/** What several test files would install at once is installed before them: apt can do one thing at a time. */
async function prepareTestPrograms() {
  const testing = (name) => pathToFileURL(inRoot('dist', 'platform', 'testing', name)).href;
  const { ensurePrograms } = await import(testing('programs.js'));
  await ensurePrograms(['curl'], ['curl', 'ca-certificates']);
  const { whyNoRadosgw } = await import(testing('radosgw.js'));
  const reason = await whyNoRadosgw();
  if (reason) console.log(`  S3 tests are skipped: ${reason}`);
}

/**
 * Makes tap's test class without the plugins that .taprc leaves out. tap does so itself, but only its next run is without their loaders,
 * which cost each test file half a second.
 */
async function prepareTap() {
  const stamp = inRoot('node_modules', '@tapjs', 'test', 'test-built', '.stamp');
  const value = fingerprint(['.taprc', 'package-lock.json']);
  if (stampMatches(stamp, value)) return;
  const { code, output } = await capture([process.execPath, inRoot('node_modules', '.bin', 'tap'), 'build']);
  if (code === 0) writeStamp(stamp, value);
  else console.log(`  tap keeps the plugins that it has: ${output.trim()}`);
}

/**
 * Runs the compiled tap tests.
 * @param {string[]} [files] compiled test files relative to the root; default: all
 * @returns {Promise<{passed: number, failed: number, skipped: number}>} assertions
 */
export async function runTypescriptTests(files = allTestFiles()) {
  await ensureNative('emulated', 'native core on an emulated GPU: building (a few minutes the first time)');
  await prepareTestPrograms();
  await prepareTap();
  const tap = [process.execPath, inRoot('node_modules', '.bin', 'tap'), '--reporter=tap', ...files];
  const { code, output } = await capture(tap, { onLine: filePrinter() });
  const [, passed = 0, failed = 0, skipped = 0] = (TOTALS.exec(output) ?? []).map((value) =>
    Number(value ?? 0),
  );
  if (code !== 0 && failed === 0) {
    console.log(output.trim().split('\n').slice(-40).join('\n'));
    return { passed, failed: 1, skipped };
  }
  return { passed, failed, skipped };
}

/** Compiled tests, and those of the bootstrap, which runs before there is a compiler. */
const allTestFiles = () =>
  listFiles(
    ['dist', 'scripts'],
    (path) => path.endsWith('/') || /^(dist\/.*\.test\.js|scripts\/.*\.test\.mjs)$/.test(path),
  );
