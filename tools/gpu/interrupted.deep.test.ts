// The GPU check on a machine that is lent for minutes: deadlines, calls that continue, signals.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import t from 'tap';
import {
  buildFolder,
  check,
  checkArgs,
  DIGESTS,
  environment,
  resultIn,
  root,
  skip,
} from './testing/fake-build.js';

t.test(
  'steps that do not fit before the deadline are not run, and a later call continues',
  { skip },
  async (t) => {
    const folder = await buildFolder(
      t,
      `${DIGESTS}\nprint(json.dumps({"part": "copy"}))\nopen(os.path.join(os.path.dirname(sys.argv[0]), "runs"), "a").write("x")`,
    );
    const stage = ['--stage', 'kernels,training', '--config', 'gpt2-tiny'];
    // 25 s less a reserve: a training is expected to take 35.
    const short = await check(folder, ...stage, '--deadline', '25');
    t.equal(short.code, 0);
    t.match(short.result.stages.training?.[0], {
      status: 'not_run',
      why: /^about 35 s are expected, and \d+ s are left before the deadline$/,
      estimated_seconds: 35,
    });
    const first = await check(folder, ...stage, '--deadline', '570');
    t.match(first.result.stages.training?.[0], { status: 'passed' });
    const runs = (await readFile(join(folder, 'runs'), 'utf8')).length;
    const again = await check(folder, ...stage, '--continue');
    t.equal((await readFile(join(folder, 'runs'), 'utf8')).length, runs, 'nothing was run again');
    t.match(again.stdout, /ok +training: training: gpt2-tiny \(an earlier call\)/);
    const late = await check(folder, ...stage, '--deadline', '11');
    t.match(
      late.result.stages.training?.[0],
      { status: 'passed' },
      'what was not run leaves earlier results',
    );
  },
);

t.test('a step that takes longer than expected ends before the deadline', { skip }, async (t) => {
  const folder = await buildFolder(
    t,
    `print(json.dumps({"part": "copy"}), flush=True)\nif args[0] == "kernels": time.sleep(600)`,
  );
  // Without estimates, everything fits.
  const program = `import sys; sys.path.insert(0, sys.argv.pop(1)); import stages, check
stages.ESTIMATES = dict.fromkeys(stages.ESTIMATES, 0); check.main()`;
  const [, ...args] = checkArgs(folder);
  const deadline = ['--stage', 'kernels', '--config', 'gpt2-tiny', '--deadline', '14'];
  const started = Date.now();
  const done = promisify(execFile)(
    'python3',
    ['-c', program, join(root, 'tools', 'gpu'), ...args, ...deadline],
    {
      env: environment,
    },
  );
  await t.rejects(done, { code: 1 });
  t.ok(Date.now() - started < 14_000, 'it ended in time');
  const { result } = await resultIn(folder);
  t.match(result.stages.kernels, [{ status: 'timed_out', measurements: [{ part: 'copy' }] }]);
});

/** A benchmark whose child writes its process id and sleeps. */
const SLEEPS = `child = subprocess.Popen(["sleep", "600"])
print(json.dumps({"part": "child", "pid": child.pid}), flush=True)
open(os.path.join(os.path.dirname(sys.argv[0]), "pid"), "w").write(str(child.pid))
time.sleep(600)`;

async function until<T>(attempt: () => T | Promise<T>): Promise<NonNullable<T>> {
  for (;;) {
    const found = await attempt();
    if (found) return found;
    await sleep(50);
  }
}

/** A zombie has ended, whether or not somebody has asked for its exit code. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
  t.test(`a check that gets ${signal} leaves no process, and keeps its steps`, { skip }, async (t) => {
    const folder = await buildFolder(t, `if "llama-tiny" in args:\n${SLEEPS.replace(/^/gm, '  ')}`);
    const args = [...checkArgs(folder), '--stage', 'kernels'];
    const child = spawn('python3', args, {
      env: { ...environment, OUT: join(folder, 'out') },
      stdio: 'ignore',
    });
    const pid = Number(await until(() => readFile(join(folder, 'pid'), 'utf8').catch(() => '')));
    t.ok(isAlive(pid));
    child.kill(signal);
    await once(child, 'exit');
    await until(() => !isAlive(pid));
    const { result, files } = await resultIn(join(folder, 'out'));
    t.equal(files.length, 1, 'the result is in $OUT');
    const [first, second] = result.stages.kernels ?? [];
    t.match(first, { name: 'kernels: gpt2-tiny' });
    if (signal === 'SIGTERM') {
      t.match(second, { status: 'failed', why: 'stopped by SIGTERM', measurements: [{ part: 'child' }] });
    }
  });
}
