/** Native suites for which too little time is left: of presets that are not built. */
import t from 'tap';
import { nativeBuildIsCurrent } from '../bootstrap/native-core.mjs';
import { startNativeTests } from './native.mjs';
import { SuiteRuns } from './suite-runs.mjs';

t.test('a suite whose build and run do not fit into the time left is not begun', async (t) => {
  const presets = ['tsan', 'asan', 'emulated-tests'].filter((preset) => !nativeBuildIsCurrent(preset));
  const printed = [];
  const runs = new SuiteRuns({ within_s: 200, reserve_ms: 0, log: (line) => printed.push(line) });
  await startNativeTests(presets, runs);
  t.same(await runs.finish(), { passed: 0, failed: 0, skipped: 0 });
  const labels = {
    tsan: ['native tests under ThreadSanitizer'],
    asan: ['emulated device', 'CPU'].map(
      (part) => `native tests under AddressSanitizer and UndefinedBehaviorSanitizer, ${part}`,
    ),
    'emulated-tests': ['native tests on an emulated CUDA device'],
  };
  t.same(
    printed.slice(1),
    presets.flatMap((preset) => labels[preset]).map((label) => `  not run ${label}`),
  );
  for (const preset of presets) t.notOk(nativeBuildIsCurrent(preset), `${preset} was not built`);
});
