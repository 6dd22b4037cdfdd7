/** Suites that fail once or twice, and suites after the time limit. */
import t from 'tap';
import { SuiteRuns } from './suite-runs.mjs';

const passes = { passed: 2, failed: 0, skipped: 1, output: 'all well' };
const fails = { passed: 1, failed: 1, output: 'one is two' };

/** A suite with these results, one after another. */
const inTurn = (...results) => {
  const run = async () => {
    run.calls += 1;
    return results.shift();
  };
  run.calls = 0;
  return run;
};

function started(options) {
  const printed = [];
  const runs = new SuiteRuns({ reserve_ms: 0, log: (line) => printed.push(line), ...options });
  return { runs, printed };
}

t.test('results are added up', async (t) => {
  const { runs, printed } = started();
  await runs.suite('a', inTurn(passes))();
  runs.continueInBackground(runs.suite('b', inTurn(fails))());
  runs.add({ passed: 10, failed: 0 });
  t.same(await runs.finish(), { passed: 13, failed: 1, skipped: 1 });
  t.same(printed, [], 'a failure is printed by the suite');
});

t.test('a suite that fails once is green, and shown with both outputs', async (t) => {
  const { runs, printed } = started({ retries: true });
  const run = inTurn(fails, passes);
  await runs.suite('test/a', run)();
  t.equal(run.calls, 1, 'it runs again when all others have ended');
  t.same(await runs.finish(), { passed: 2, failed: 0, skipped: 1 });
  t.match(printed.join('\n'), /\nFLAKY test\/a\n-- failed first:\none is two\n-- passed .*\nall well$/);
});

t.test('failed suites run again one after another, when no other suite runs', async (t) => {
  const { runs } = started({ retries: true });
  let running = 0;
  const run = async () => {
    t.equal(running, 0);
    running += 1;
    await new Promise(setImmediate);
    running -= 1;
    return fails;
  };
  await runs.suite('a', run)();
  await runs.suite('b', run)();
  t.match(await runs.finish(), { failed: 2 });
});

t.test('a suite that fails twice is red', async (t) => {
  const { runs, printed } = started({ retries: true });
  const run = inTurn(fails, fails, passes);
  await runs.suite('a', run)();
  t.same(await runs.finish(), { passed: 1, failed: 1, skipped: 0 });
  t.equal(run.calls, 2);
  t.notMatch(printed.join('\n'), 'FLAKY');
});

t.test('after the time limit no suite begins; each is named', async (t) => {
  const { runs, printed } = started({ within_s: 0 });
  t.equal(runs.hasTimeFor(0), false);
  const run = inTurn(passes);
  await runs.suite('a', run)();
  await runs.suite('b', run)();
  t.same(await runs.finish(), { passed: 0, failed: 0, skipped: 0 });
  t.equal(run.calls, 0);
  t.same(printed, ['\nnot run, since too little time was left: 2', '  not run a', '  not run b']);
});

t.test('a failure that could not run again within the time limit stays one', async (t) => {
  const { runs, printed } = started({ within_s: 0.05, retries: true });
  await runs.suite('a', inTurn(fails, passes))();
  await new Promise((resolve) => setTimeout(resolve, 60));
  t.match(await runs.finish(), { failed: 1 });
  t.match(printed.join('\n'), 'FAILED a: not run again');
});

t.test('the reserve before the end is for failures that run again', async (t) => {
  const { runs } = started({ within_s: 60, reserve_ms: 60_000 });
  t.equal(runs.hasTimeFor(0), false);
});

t.test('a suite that takes longer than the time left does not begin', async (t) => {
  const { runs, printed } = started({ within_s: 600 });
  const [long, short] = [inTurn(passes), inTurn(passes)];
  await runs.suite('long', long, { takes_s: 601 })();
  await runs.suite('short', short, { takes_s: 300 })();
  t.match(await runs.finish(), { passed: 2, failed: 0 });
  t.same([long.calls, short.calls], [0, 1]);
  t.same(printed, ['\nnot run, since too little time was left: 1', '  not run long']);
});
