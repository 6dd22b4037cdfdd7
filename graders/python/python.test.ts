import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { PythonGrader } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { testGraders } from '../testing/graders.js';
import { pythonProcesses, pythonProgram } from '../testing/python.js';

const X86 = '/usr/include/x86_64-linux-gnu/asm/unistd_64.h';

const grader = (source: string): PythonGrader => ({ type: 'python', name: 'p', source });
const body = (lines: string) => grader(`def grade(sample, item):\n  ${lines.replaceAll('\n', '\n  ')}`);
/** A grader that writes bytes in the place of its result. */
const forged = (bytes: string) =>
  body(
    `import os\nfor fd in range(3, 64):\n  try: os.write(fd, ${bytes})\n  except OSError: pass\nos._exit(0)`,
  );
const graded = { item: { answer: '4', list: [1, 2] }, sample: { output_text: '4' } };

t.test('scores', async (t) => {
  const graders = testGraders(t);
  const scoreOf = async (lines: string) => {
    const { reward, errors } = await graders.grade(body(lines), graded);
    t.same(errors, []);
    return reward;
  };
  t.equal(await scoreOf('return 1.0 if sample["output_text"] == item["answer"] else 0.0'), 1);
  t.equal(await scoreOf('return sum(item["list"])'), 3);
  t.equal(await scoreOf('return sample["output_text"] == "5"'), 0);
  t.equal(await scoreOf('from fractions import Fraction\nreturn Fraction(1, 4)'), 0.25);
  t.equal(await scoreOf('print("hello")\nreturn -2'), -2);
});

t.test('grades leave nothing to each other', async (t) => {
  const graders = testGraders(t, { python: { processes: 1 } });
  const source = grader(
    'import random\nseen = []\ndef grade(sample, item):\n  seen.append(item)\n  return len(seen) + random.random()',
  );
  const first = await graders.grade(source, graded);
  const second = await graders.grade(source, graded);
  t.same(first.errors, []);
  t.equal(second.reward, first.reward);
});

t.test('answers at once', async (t) => {
  const graders = testGraders(t);
  const source = body('return float(sample["output_text"])');
  const grades = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      graders.grade(source, { item: {}, sample: { output_text: String(n) } }),
    ),
  );
  t.same(
    grades.map(({ reward }) => reward),
    Array.from({ length: 20 }, (_, n) => n),
  );
});

t.test('a hostile source fails with its code, and nothing else does', async (t) => {
  let requests = 0;
  const server = createServer((_, answer) => {
    requests += 1;
    answer.end();
  }).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const file = join(tmpdir(), `zerofleet-grader-${process.pid}`);
  process.env.GRADER_SECRET = 'secret';
  t.teardown(() => {
    delete process.env.GRADER_SECRET;
  });
  const hostile: [code: string, source: PythonGrader][] = [
    ['python_time_limit', body('while True: pass')],
    ['python_time_limit', grader('while True: pass')],
    ['python_time_limit', body('import os\nwhile True: os.write(1, b"x" * 1000000)')],
    ['python_forbidden', body('import os\nwhile True: os.fork()')],
    ['python_failed', body('import threading\nthreading.Thread(target=print).start()')],
    ['python_forbidden', body('import subprocess\nreturn subprocess.run(["true"]).returncode')],
    ['python_memory_limit', body('return len(bytearray(10 << 30))')],
    ['python_memory_limit', body('x = []\nwhile True: x.append(bytearray(1 << 20))')],
    ['python_forbidden', body(`import socket\nsocket.create_connection(("127.0.0.1", ${port}))`)],
    ['python_failed', body(`import urllib.request as u\nu.urlopen("http://127.0.0.1:${port}/")`)],
    ['python_forbidden', body('return len(open("/etc/passwd").read())')],
    ['python_forbidden', body('import os\nreturn len(os.listdir("/"))')],
    ['python_forbidden', body('import os\nreturn len(open(f"/proc/{os.getppid()}/environ").read())')],
    ['python_forbidden', body(`open("${file}", "w")`)],
    ['python_forbidden', body('import os\nos.unlink("/etc/hostname")')],
    ['python_forbidden', body('import os\nos.kill(os.getppid(), 9)')],
    ['python_forbidden', body('import os\nos.kill(-1, 9)')],
    ['python_died', body('import os\nos._exit(0)')],
    ['python_died', body('import ctypes\nctypes.string_at(0)')],
    ['python_failed', body('raise SystemExit')],
    ['python_failed', body('raise ValueError("x" * 10000000)')],
    [
      'python_output_limit',
      body(
        'import os\nfor fd in range(3, 64):\n  try:\n    while True: os.write(fd, b"x" * 1000000)\n  except OSError: pass\nreturn 1',
      ),
    ],
    ['python_output_limit', forged('b"x" * 40000')],
    ['python_failed', forged(`b'{"error": {"code": "python_failed", "message": "' + b"x" * 20000 + b'"}}'`)],
    ['python_result_invalid', forged('b"no json"')],
    ['python_result_invalid', body('return float("nan")')],
    ['python_result_invalid', body('return float("inf")')],
    ['python_result_invalid', body('return None')],
    ['python_result_invalid', body('return "1"')],
    ['python_source_invalid', grader('score = 1')],
    ['python_source_invalid', grader('def grade(sample, item)\n  return 1')],
    ['python_source_invalid', grader(`x = ${'('.repeat(5000)}`)],
  ];
  const graders = testGraders(t);
  for (const [code, source] of hostile) {
    const { reward, errors } = await graders.grade(source, graded);
    t.equal(reward, 0);
    t.match(
      errors,
      [{ grader: 'p', code }],
      `${code}: ${source.source.slice(25, 80)} ${JSON.stringify(errors)}`,
    );
    t.ok((errors[0]?.message.length ?? 0) <= 2000);
  }
  const environment = await graders.grade(
    body('import os\nreturn len(os.environ.get("GRADER_SECRET", "")) + len(os.environ.get("PATH", ""))'),
    graded,
  );
  t.match(environment, { reward: 0, errors: [] });
  t.equal((await graders.grade(body('return 1'), graded)).reward, 1, 'other sources are graded');
  t.equal(requests, 0, 'no request arrived');
  t.notOk(existsSync(file));
  await graders.close();
  for (let n = 0; n < 100 && pythonProcesses().length > 0; n += 1) await sleep(50);
  t.same(pythonProcesses(), [], 'no process is left');
});

t.test('system calls of machine code, and signals by fcntl, are refused', async (t) => {
  const graders = testGraders(t);
  const lines = [
    'import ctypes, os',
    'libc = ctypes.CDLL(None)',
    'parent = os.getppid()',
    'refused = [libc.kill(parent, 0), libc.ptrace(16, parent, 0, 0), libc.fcntl(3, 8, parent), libc.fork()]',
    'refused += [libc.prctl(1, 0, 0, 0, 0), libc.socket(2, 1, 0), libc.syscall(0x40000000 + 41, 2, 1, 0)]',
    'refused += [libc.memfd_create(b"x", 0), libc.shmget(1, 4096, 0o1600), libc.unshare(0x10000000)]',
    'return refused == [-1] * len(refused)',
  ];
  const { reward, errors } = await graders.grade(body(lines.join('\n')), graded);
  t.same([reward, errors], [1, []]);
});

t.test('a source that cannot be compiled is a problem of its field', async (t) => {
  const graders = testGraders(t);
  t.same(await graders.problems(body('return 1')), []);
  const wrong = grader('def grade(sample, item):\n  return 1 +');
  t.match(await graders.problems(wrong), [{ pointer: '/source', code: 'grader_invalid', message: /line 2/ }]);
  const multi = { type: 'multi' as const, name: 'm', graders: { a: wrong }, calculate_output: 'a' };
  t.match(await graders.problems(multi), [{ pointer: '/graders/a/source' }]);
});

t.test('an aborted grade ends its process', async (t) => {
  const graders = testGraders(t);
  const abort = new AbortController();
  const running = graders.grade(body('import time\ntime.sleep(100)'), graded, abort.signal);
  setTimeout(() => abort.abort(new Error('enough')), 500);
  await t.rejects(running, { message: 'enough' });
  await t.rejects(graders.grade(body('return 1'), graded, abort.signal), { message: 'enough' });
});

t.test('an idle process that has died is not used', async (t) => {
  const graders = testGraders(t);
  t.equal((await graders.grade(body('return 1'), graded)).reward, 1);
  const [idle, ...others] = pythonProcesses();
  t.same(others, []);
  process.kill(idle?.pid ?? 0, 'SIGKILL');
  while (pythonProcesses().length > 0) await sleep(20);
  await sleep(100);
  t.match(await graders.grade(body('return 1'), graded), { reward: 1, errors: [] });
});

t.test('without Python the grade says what to do', async (t) => {
  for (const program of ['/nowhere/python3', pythonProgram(t, ['raise SystemExit(3)'])]) {
    const graders = testGraders(t, { python: { program } });
    t.match(await graders.grade(body('return 1'), graded), {
      reward: 0,
      errors: [{ code: 'python_unavailable', message: /(cannot be started|status 3).*: install Python/ }],
    });
    t.same(await graders.problems(body('return 1')), [], 'it is no problem of the document');
  }
});

/** A Python that starts under a seccomp filter, in which one system call fails with ENOSYS. */
function pythonWithout(t: Test, call: number): string {
  return pythonProgram(t, [
    'import os, sys',
    'sys.dont_write_bytecode = True',
    `sys.path.insert(0, ${JSON.stringify(join(projectRoot(), 'graders/python'))})`,
    'import confine',
    'confine.prctl(confine.PR_SET_NO_NEW_PRIVS, 1)',
    `steps = [(0x20, 0, 0, 0), (0x15, 0, 1, ${call}), (6, 0, 0, 0x00050026), (6, 0, 0, 0x7FFF0000)]`,
    'instructions = (confine.Instruction * 4)(*(confine.Instruction(*step) for step in steps))',
    'confine.restrict_calls(confine.Program(4, instructions))',
    'os.execv(sys.executable, ["python3", *sys.argv[1:]])',
  ]);
}

t.test('no source runs where a layer of the sandbox is missing', async (t) => {
  for (const call of [444, 445, 446]) {
    const graders = testGraders(t, { python: { program: pythonWithout(t, call) } });
    t.match(
      await graders.grade(body('return 1'), graded),
      {
        reward: 0,
        errors: [{ code: 'python_unavailable', message: /Landlock is refused.*need Linux 5.13/ }],
      },
      String(call),
    );
  }
});

t.test('numbers of system calls are those of the kernel', { skip: !existsSync(X86) && 'no headers' }, (t) => {
  const source = readFileSync(join(projectRoot(), 'graders/python/confine.py'), 'utf8');
  const headers = [X86, '/usr/include/asm-generic/unistd.h'].map((path) => readFileSync(path, 'utf8'));
  for (const [, name = '', ...given] of source.matchAll(/"(\w+)": \((\d+), (\d+|None)\)/g))
    for (const [index, number] of given.entries()) {
      if (number === 'None') continue;
      // The generic table names the calls of 64-bit machines as those of 32-bit ones.
      const found = new RegExp(`^#define __NR(?:3264)?_(?:${name})\\s+(\\d+)$`, 'm').exec(
        headers[index] ?? '',
      );
      const aliases: Record<string, string> = { newfstatat: 'fstatat' };
      const alias = new RegExp(`^#define __NR3264_${aliases[name]}\\s+(\\d+)$`, 'm').exec(
        headers[index] ?? '',
      );
      t.equal((found ?? alias)?.[1], number, `${name} of ${headers.length} tables`);
    }
  t.end();
});
