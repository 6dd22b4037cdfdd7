import t from 'tap';
import { buildPercent } from './native-core.mjs';
import { Progress } from './progress.mjs';

/** A stream that records its output, with durations replaced. */
function stream(options = {}) {
  const written = [];
  const write = (part) => written.push(part.replace(/\d+\.\d s/g, 'N s'));
  return { ...options, write, text: () => written.join('') };
}

/** Starts a task; `advance` reports its progress, `end` and `fail` finish it. */
function start(progress, label) {
  const controls = {};
  controls.done = progress.timed(label, (onProgress) => {
    controls.advance = onProgress;
    return new Promise((resolve, reject) => Object.assign(controls, { end: resolve, fail: reject }));
  });
  return controls;
}

t.test('not a terminal: a line per quarter, and one per finished task', async (t) => {
  const out = stream();
  const progress = new Progress(out);
  const [core, packages] = [start(progress, 'core'), start(progress, 'packages')];
  for (const percent of [1, 24, 26, 27, 20, 80]) core.advance(percent);
  packages.end();
  await packages.done;
  core.advance(100);
  core.end();
  await core.done;
  t.equal(out.text(), '  core … 25 %\n  core … 75 %\n  packages … N s\n  core … N s\n');
});

t.test('terminal: the last line shows tasks in progress, truncated to its width', async (t) => {
  const out = stream({ isTTY: true, columns: 23 });
  const progress = new Progress(out);
  const [core, packages] = [start(progress, 'core'), start(progress, 'packages')];
  core.advance(37);
  packages.end();
  await packages.done;
  core.end();
  await core.done;
  t.same(out.text().split('\r\x1b[K'), [
    '',
    '  core …',
    '  core …, packages …',
    '  core … 37 %, package',
    '  packages … N s\n',
    '  core … 37 %',
    '  core … N s\n',
    '',
  ]);
});

t.test('a failed task is reported and its error is thrown', async (t) => {
  const out = stream();
  const { fail, done } = start(new Progress(out), 'core');
  fail(new Error('no compiler'));
  await t.rejects(done, { message: 'no compiler' });
  t.equal(out.text(), '  core … failed\n');
});

t.test('progress of a build, from the lines of make and ninja', async (t) => {
  t.equal(buildPercent('[  7%] Building CXX object x.o'), 7);
  t.equal(buildPercent('[100%] Linking CXX shared module zerofleet.node'), 100);
  t.equal(buildPercent('[ 85%] Built target zf_core'), null);
  t.equal(buildPercent('[3/8] Building CXX object x.o'), 37);
  t.equal(buildPercent('x.cc:3: warning: [12%] is no progress'), null);
});
