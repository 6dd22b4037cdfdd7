import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import type { PythonGrader } from '../../contracts/index.js';
import { testGraders } from '../testing/graders.js';
import { pythonProcesses, pythonProgram } from '../testing/python.js';

const grader = (...lines: string[]): PythonGrader => ({
  type: 'python',
  name: 'p',
  source: lines.join('\n'),
});
const graded = { item: {}, sample: { output_text: '4' } };

t.test('imports touch no frame, have bounds, and run no programs', async (t) => {
  const lines = [
    'import os, sys',
    'os.environ["PYTHONPATH"] = os.path.dirname(__file__)',
    'os.execv(sys.executable, ["python3", *sys.argv[1:]])',
  ];
  const init = [
    'import os, resource, sys',
    'programs = []',
    'limit = resource.getrlimit(resource.RLIMIT_AS)[0]',
    'sys.stdin.read()',
    'os.write(1, b"no frame")',
  ];
  const main = ['import noisy, os', 'noisy.programs.append(os.getpid())'];
  const noisy = { '__init__.py': init.join('\n'), '__main__.py': main.join('\n') };
  const program = pythonProgram(t, lines, { noisy });
  const graders = testGraders(t, { python: { program }, limits: { memory_bytes: 2 ** 29 } });
  const source = grader(
    'import os',
    'import noisy',
    'import noisy.__main__',
    'def grade(sample, item): return (noisy.programs == [os.getpid()]) + (noisy.limit == 2 ** 29)',
  );
  t.match(await graders.grade(source, graded), { reward: 2, errors: [] });
});

t.test('a deeply nested item is no fault of the source', async (t) => {
  const graders = testGraders(t);
  const source = grader('def grade(sample, item): return 1');
  const item = { deep: JSON.parse(`${'['.repeat(2000)}${']'.repeat(2000)}`) };
  const { reward, errors } = await graders.grade(source, { ...graded, item });
  // Releases of Python read different depths.
  if (reward === 0) t.match(errors, [{ code: 'python_failed', message: /the item is nested/ }]);
  t.match(await graders.grade(source, graded), { reward: 1, errors: [] });
});

t.test('the sandbox leaks what succeeds, and nothing that is absent', async (t) => {
  const patched = (...lines: string[]) =>
    pythonProgram(t, [
      'import os, runpy, socket, sys',
      'sys.dont_write_bytecode = True',
      'sys.argv = sys.argv[3:]',
      'sys.path.insert(0, os.path.dirname(sys.argv[0]))',
      'opened = os.open',
      ...lines,
      'runpy.run_path(sys.argv[0], run_name="__main__")',
    ]);
  const source = grader('def grade(sample, item): return 1');
  const absent = patched(
    'def open_some(path, *rest): return opened("/nowhere" if path == "/proc/1/environ" else path, *rest)',
    'os.open = open_some',
  );
  const hidden = testGraders(t, { python: { program: absent } });
  t.match(await hidden.grade(source, graded), { reward: 1, errors: [] });
  const leaking = testGraders(t, { python: { program: patched('socket.socket = lambda *given: None') } });
  t.match(await leaking.grade(source, graded), {
    reward: 0,
    errors: [{ code: 'python_unavailable', message: /the sandbox leaks: network/ }],
  });
});

t.test('a frame that nobody waits for is no answer to the next request', async (t) => {
  const program = pythonProgram(t, [
    'import json, os, struct, sys',
    'def read(): return sys.stdin.buffer.read(struct.unpack(">I", sys.stdin.buffer.read(4))[0])',
    'def frame(value): return struct.pack(">I", len(json.dumps(value))) + json.dumps(value).encode()',
    'read()',
    'os.write(1, frame({}))',
    'while read(): os.write(1, frame({"score": 1}) + frame({"score": 99}))',
  ]);
  const graders = testGraders(t, { python: { program } });
  for (let n = 0; n < 2; n += 1)
    t.match(await graders.grade(grader('source'), graded), { reward: 1, errors: [] });
});

t.test('a grade has its time also after it has closed its pipe', async (t) => {
  const graders = testGraders(t, { limits: { seconds: 1 } });
  const source = grader(
    'import os, time',
    'def grade(sample, item):',
    '  os.closerange(0, 64)',
    '  time.sleep(100)',
  );
  t.match(await graders.grade(source, graded), {
    errors: [{ code: 'python_time_limit', message: 'the grade took more than 1 s' }],
  });
});

t.test('a grade that the kernel kills has taken its memory, or its time', async (t) => {
  const graders = testGraders(t);
  const source = grader(
    'import time',
    'def grade(sample, item): return time.sleep(item.get("seconds", 0)) or 1',
  );
  t.equal((await graders.grade(source, graded)).reward, 1);
  const sleeping = graders.grade(source, { ...graded, item: { seconds: 100 } });
  const find = () => {
    const all = pythonProcesses();
    return all.find(({ parent }) => all.some(({ pid }) => pid === parent));
  };
  let child = find();
  for (; child === undefined; child = find()) await sleep(50);
  process.kill(child.pid, 'SIGKILL');
  t.match(await sleeping, { errors: [{ code: 'python_memory_limit', message: /was killed/ }] });
  t.match(await graders.grade(source, graded), { reward: 1, errors: [] });
  const spinning = grader(
    'import signal',
    'def grade(sample, item):',
    '  signal.signal(signal.SIGXCPU, signal.SIG_IGN)',
    '  while True: pass',
  );
  t.match(await graders.grade(spinning, graded), { errors: [{ code: 'python_time_limit' }] });
});
