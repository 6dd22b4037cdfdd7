/** Results of the runner for test files that pass, fail, skip, crash or exit early. */
import { join } from 'node:path';
import t from 'tap';
import { startNativeTests } from './native.mjs';
import { SuiteRuns } from './suite-runs.mjs';
import { runGroup } from './typescript.mjs';

const FILES = {
  'passes.test.mjs': `
    import t from 'tap';
    process.env.ZF_TEST_RUNNER = 'changed';
    t.before(() => { t.context.isReady = true; });
    t.test('two assertions', async (t) => { t.ok(true); t.equal(1, 1); });`,
  'looks.test.mjs': `
    import t from 'tap';
    t.test('the environment is as it was', async (t) => t.equal(process.env.ZF_TEST_RUNNER, undefined));`,
  'fails.test.mjs': `
    import t from 'tap';
    t.test('wrong', async (t) => t.equal(1, 2, 'one is two'));`,
  'skips.test.mjs': `
    import t from 'tap';
    t.test('elsewhere', { skip: 'needs another machine' }, async (t) => t.fail());
    t.test('here', async (t) => t.pass());`,
  'spawns.test.mjs': `
    import t from 'tap';
    t.test('passes', async (t) => t.pass());
    t.spawn(process.execPath, ['-e', 'process.exit(3)']);`,
  'throws.test.mjs': `throw new Error('at its top level');`,
  'crashes.test.mjs': `
    import t from 'tap';
    t.test('killed', async () => process.kill(process.pid, 'SIGKILL'));`,
  'ends.test.mjs': `
    import t from 'tap';
    t.test('ends the process', async () => process.exit(0));`,
  'leaves.test.mjs': `
    import t from 'tap';
    t.test('passes, and leaves an error behind', async (t) => {
      t.pass();
      setTimeout(() => { throw new Error('later'); }, 1);
    });`,
  'stays.test.mjs': `
    import t from 'tap';
    t.test('passes, and leaves a timer behind', async (t) => {
      t.pass();
      setInterval(() => {}, 10);
    });`,
};

/** Runs files of FILES in one process. */
async function run(t, ...names) {
  const dir = t.testdir(FILES);
  const printed = [];
  const { log } = console;
  console.log = (line) => printed.push(line);
  try {
    const results = [];
    const totals = await runGroup(
      names.map((name) => join(dir, `${name}.test.mjs`)),
      (result) => results.push(result),
    );
    return { totals, results, printed: printed.join('\n') };
  } finally {
    console.log = log;
  }
}

t.test('assertions of all files are counted, each file for itself', async (t) => {
  const { totals, results } = await run(t, 'passes', 'looks', 'skips');
  t.match(totals, { passed: 4, failed: 0, skipped: 1 });
  t.same(
    results.map(({ ok }) => ok),
    [true, true, true],
  );
  t.match(results[2].skipped, ['elsewhere: needs another machine']);
  t.ok(results.every(({ times }) => times.wall_s > 0));
});

t.test('a failure is reported for its file with its diagnostics; the other files run', async (t) => {
  const { totals, results } = await run(t, 'fails', 'passes');
  t.match(totals, { passed: 2, failed: 1 });
  t.match(results, [{ ok: false }, { ok: true }]);
  t.match(results[0].output.join('\n'), 'one is two');
});

t.test('a file whose own process fails is a failure', async (t) => {
  const { totals, results } = await run(t, 'spawns', 'passes');
  t.same(
    results.map(({ ok }) => ok),
    [false, true],
  );
  t.equal(totals.failed, 1);
});

t.test('a file that throws on load fails', async (t) => {
  const { totals, results } = await run(t, 'throws', 'passes');
  t.match(totals, { passed: 2, failed: 1 });
  t.match(results[0].output.join('\n'), 'at its top level');
});

for (const name of ['crashes', 'ends']) {
  t.test(`a process that ${name} before its end is a failure`, async (t) => {
    const { totals, printed } = await run(t, name, 'passes');
    t.ok(totals.failed > 0);
    t.match(printed, `${name}.test.mjs`);
  });
}

t.test(
  'a process that does not end after its last test is a failure that names the open handle',
  async (t) => {
    process.env.ZF_TEST_LEAVE_MS = '300';
    t.teardown(() => {
      delete process.env.ZF_TEST_LEAVE_MS;
    });
    const { totals, printed } = await run(t, 'stays');
    t.match(totals, { passed: 1, failed: 1 });
    t.match(printed, /still open long after the last test: .*Timeout/);
  },
);

t.test('an error after the last test is a failure', async (t) => {
  const { totals } = await run(t, 'leaves');
  t.ok(totals.failed > 0);
});

t.test('after the time limit no native suite is built or run', async (t) => {
  const printed = [];
  const runs = new SuiteRuns({ within_s: 0, log: (line) => printed.push(line) });
  await startNativeTests(['asan', 'tsan'], runs);
  t.match(await runs.finish(), { passed: 0, failed: 0 });
  t.match(printed.slice(1), [/emulated device$/, /CPU$/, /ThreadSanitizer$/]);
});
