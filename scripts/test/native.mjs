import { capture } from '../bootstrap/command.mjs';
import { nativeBuilds } from '../bootstrap/native-core.mjs';
import { inRoot } from '../bootstrap/paths.mjs';
import { ensureNative } from '../bootstrap/setup.mjs';

/** The sanitizers stop at the first problem; their reports name functions and lines. */
const sanitizerEnv = {
  ASAN_OPTIONS: 'detect_leaks=1:strict_string_checks=1',
  UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1',
  TSAN_OPTIONS: `halt_on_error=1:second_deadlock_stack=1:suppressions=${inRoot('native', 'test', 'tsan.supp')}`,
};

const suites = [
  { build: 'tests', label: 'native tests' },
  { build: 'tests-asan', label: 'native tests under AddressSanitizer and UndefinedBehaviorSanitizer' },
  { build: 'tests-tsan', label: 'native tests under ThreadSanitizer' },
];

const CASES = /test cases:\s+\d+\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed/g;

/** Adds up doctest's summaries; a run that ended without one (a crash) counts as one failure. */
function countCases(output, code) {
  const totals = { passed: 0, failed: 0, skipped: 0 };
  for (const [, passed, failed] of output.matchAll(CASES)) {
    totals.passed += Number(passed);
    totals.failed += Number(failed);
  }
  if (code !== 0 && totals.failed === 0) totals.failed = 1;
  return totals;
}

async function runSuite({ build, label }) {
  const { dir } = nativeBuilds[build];
  const ctest = ['ctest', '--test-dir', dir, '--output-on-failure', '--verbose', '--no-tests=error'];
  const { code, output } = await capture(ctest, { env: sanitizerEnv });
  const totals = countCases(output, code);
  console.log(`  ${code === 0 ? 'ok    ' : 'FAILED'} ${label}: ${totals.passed} cases`);
  if (code !== 0) console.log(output.trim());
  return totals;
}

/**
 * Builds and runs the native tests: plain, and under each sanitizer.
 * @returns {Promise<{passed: number, failed: number, skipped: number}[]>} test cases, one entry per suite
 */
export async function runNativeTests() {
  for (const { build, label } of suites) await ensureNative(build, `${label}: building`);
  // Each runs on hardly more than one core.
  return Promise.all(suites.map(runSuite));
}
