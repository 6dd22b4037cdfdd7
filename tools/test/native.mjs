import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { capture } from '../bootstrap/command.mjs';
import { SetupError } from '../bootstrap/errors.mjs';
import { nativeBuildIsCurrent } from '../bootstrap/native-core.mjs';
import { inRoot } from '../bootstrap/paths.mjs';
import { ensureNative } from '../bootstrap/setup.mjs';

/**
 * Presets of native/CMakePresets.json. `parts`: ctest's options for programs that run beside the others; all one after
 * another when absent. `check`: run instead of its programs, which need a GPU. `build_s`, `run_s`: estimated durations
 * of deep suites on two cores, of the build with an empty compiler cache.
 */
const suites = {
  tests: { label: 'native tests' },
  'emulated-tests': { label: 'native tests on an emulated CUDA device', build_s: 240, run_s: 120 },
  asan: {
    label: 'native tests under AddressSanitizer and UndefinedBehaviorSanitizer',
    build_s: 360,
    run_s: 240,
    parts: { 'emulated device': ['--label-regex', 'emulated'], CPU: ['--label-exclude', 'emulated'] },
  },
  tsan: { label: 'native tests under ThreadSanitizer', build_s: 300, run_s: 900 },
  cuda: {
    label: 'CUDA backend by nvcc: registers of kernels',
    build_s: 360,
    run_s: 10,
    check: ['python3', 'tools/gpu/kernel_resources.py', 'native/build-cuda'],
  },
};

const CASES = /test cases:\s+\d+\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed/g;

const hasNvcc = () =>
  Boolean(process.env.CUDACXX) ||
  (process.env.PATH ?? '').split(delimiter).some((dir) => existsSync(join(dir, 'nvcc')));

/** Adds up doctest's summaries. A failed run without one (a crash) counts as one failure, a check as one case. */
function countCases(output, code, isCheck) {
  const totals = { passed: isCheck && code === 0 ? 1 : 0, failed: 0, skipped: 0 };
  for (const [, passed, failed] of output.matchAll(CASES)) {
    totals.passed += Number(passed);
    totals.failed += Number(failed);
  }
  if (code !== 0 && totals.failed === 0) totals.failed = 1;
  return totals;
}

const labelOf = (preset, part) => (part ? `${suites[preset].label}, ${part}` : suites[preset].label);

/** Runs a preset, or one of its parts. */
async function runSuite(preset, part) {
  const { check, parts } = suites[preset];
  const programs = part ? parts[part] : [];
  const started = performance.now();
  const { code, output } = check
    ? await capture(check)
    : await capture(['ctest', '--preset', preset, '--verbose', ...programs], { cwd: inRoot('native') });
  const totals = countCases(output, code, Boolean(check));
  const took = `${((performance.now() - started) / 1000).toFixed(1)} s`;
  console.log(
    `  ${code === 0 ? 'ok    ' : 'FAILED'} ${labelOf(preset, part)}: ${totals.passed} cases ${took}`,
  );
  if (code !== 0) console.log(output.trim());
  return { ...totals, output };
}

/**
 * Builds a preset. An error of the compiler is printed and counts as a failure. @returns {Promise<boolean>} whether it
 * is built
 */
async function build(preset, runs) {
  const label = `${labelOf(preset)}: building`;
  try {
    await ensureNative(preset, label);
    return true;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.log(`  FAILED ${label}\n${error.message}`);
    runs.add({ passed: 0, failed: 1 });
    return false;
  }
}

function skipCuda(runs) {
  console.log(`  skipped ${suites.cuda.label}: nvcc is not installed`);
  runs.add({ passed: 0, failed: 0, skipped: 1 });
}

/**
 * Builds native tests, and starts those of a preset when they are built. They use few cores, so the next build or part
 * need not wait for them: they continue in the background. A preset whose build and tests would not end within the time
 * limit is not built.
 * @param {(keyof typeof suites)[]} presets in the order in which they begin, those that run long first
 * @param {import('./suite-runs.mjs').SuiteRuns} runs
 */
export async function startNativeTests(presets, runs) {
  for (const preset of presets) {
    if (preset === 'cuda' && !hasNvcc()) {
      skipCuda(runs);
      continue;
    }
    const { parts = { '': [] }, build_s = 0, run_s: takesS = 0 } = suites[preset];
    const names = Object.keys(parts);
    const isBuilt = nativeBuildIsCurrent(preset);
    if (!runs.hasTimeFor(takesS + (isBuilt ? 0 : build_s))) {
      for (const part of names) runs.skip(labelOf(preset, part));
      continue;
    }
    if (!(await build(preset, runs))) continue;
    const tasks = names.map((part) =>
      runs.suite(labelOf(preset, part), () => runSuite(preset, part), { takes_s: takesS }),
    );
    runs.continueInBackground(Promise.all(tasks.map((task) => task())));
  }
}
