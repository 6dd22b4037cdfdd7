/** Tests of processes that survive SIGKILL. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { ZerofleetError } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import { runTask } from '../agent/supervisor/task-runner.js';
import { testProcesses, unkillableProcesses } from '../testing/child-processes.js';
import type { Fork } from './child-processes.js';

const waiting = fileURLToPath(new URL('../testing/scripted-rank.js', import.meta.url));
const programs = { rank: waiting, task: waiting };
const log = createLogger({ level: 'silent', name: 'test' });

t.test('a machine has a problem while a killed process still exists', async (t) => {
  const { fork, release } = unkillableProcesses();
  const processes = testProcesses({ programs, fork, kill_ms: 50 });
  const seen: (string | null)[] = [];
  const cleared = new Promise<void>((resolve) => {
    processes.onChange(() => {
      seen.push(processes.problem);
      if (processes.problem === null) resolve();
    });
  });
  const child = processes.start('rank', process.env);
  const reported = new Promise<string>((resolve) => {
    processes.kill(child, 'rank 3', resolve);
    processes.kill(child, 'rank 3', () => t.fail('once'));
  });
  const problem = await reported;
  const where = process.platform === 'linux' ? ', in state [A-Z]' : '';
  t.match(problem, new RegExp(`^rank 3, process ${child.pid}, still exists 0.05 s after SIGKILL${where}`));
  t.equal(processes.problem, problem);
  release();
  await cleared;
  t.strictSame(seen, [problem, null]);
});

t.test('a process that ends in time is no problem', async (t) => {
  const processes = testProcesses({ programs });
  const child = processes.start('rank', process.env);
  processes.kill(child, 'rank 0', () => t.fail('it ended'));
  await once(child, 'close');
  t.equal(processes.problem, null);
});

t.test('a task that cannot be killed does not block', async (t) => {
  const { fork, release } = unkillableProcesses();
  t.teardown(release);
  const processes = testProcesses({ programs, fork, kill_ms: 50 });
  const stop = new AbortController();
  const request = { kind: 'inspect_machine', gpus: false, cuda: false } as const;
  const task = runTask(processes, request, { signal: stop.signal, session: null, log });
  stop.abort(new ZerofleetError('device_unavailable', 'too late'));
  await t.rejects(task, { code: 'device_unavailable' });
  t.match(processes.problem, /^inspect_machine, process/);
});

t.test('processes that were prepared are taken by work in the same environment', async (t) => {
  const started: ChildProcess[] = [];
  const record: Fork = (...call) => {
    const child = fork(...call);
    started.push(child);
    return child;
  };
  const processes = testProcesses({ programs, fork: record });
  const env = { ...process.env, ZF_TEST: 'a' };
  const endUnused = processes.prepare('rank', env, 3);
  t.equal(started.length, 3);
  const [first, second, third] = started as [ChildProcess, ChildProcess, ChildProcess];
  t.equal(processes.start('rank', { ...env }), first);
  const other = processes.start('rank', { ...env, ZF_TEST: 'b' });
  t.notOk([first, second, third].includes(other), 'of another environment');
  second.kill('SIGKILL');
  await once(second, 'exit');
  endUnused();
  await once(third, 'close');
  t.equal(third.signalCode, 'SIGKILL', 'the dead one is forgotten, and the last one had no work');
  t.equal(first.exitCode ?? first.signalCode, null);
  const ended = [first, other].map((child) => once(child, 'close'));
  for (const child of [first, other]) processes.kill(child, 'rank', () => t.fail('it ended'));
  await Promise.all(ended);
});
