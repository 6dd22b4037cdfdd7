/** Tests that a stopped or busy child process ends with its agent, which its channel cannot do. */
import { execFileSync, fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { testModel } from '../../../formats/testing/models.js';
import { programPath } from '../../../platform/process/programs.js';
import { projectRoot } from '../../../platform/process/root.js';
import type { TaskRequest } from '../../tasks/protocol.js';

const built = existsSync(join(projectRoot(), 'native', 'build', 'zerofleet.node'));
const skip =
  process.platform !== 'linux' ? 'supported on Linux only' : built ? false : 'the native core is not built';

/** Starts a parent with a child, stops the child, kills the parent, and waits for the end of the child. */
async function orphan(t: Test, ...args: string[]): Promise<void> {
  const parent = fork(
    fileURLToPath(new URL('../../testing/orphan-main.js', import.meta.url)),
    ['parent', ...args],
    {
      execArgv: [],
    },
  );
  t.teardown(() => parent.kill('SIGKILL'));
  const pid = await new Promise<number>((resolve) =>
    parent.once('message', (message) => resolve(message as number)),
  );
  process.kill(pid, 'SIGSTOP');
  parent.kill('SIGKILL');
  // No event reports the end; the test's own timeout covers a process that stays.
  while (await isAlive(pid)) await delay(10);
}

t.test('a stopped child ends with a parent that was killed', { skip }, async (t) => {
  await orphan(t);
});

t.test('the process of a model that does not read its channel ends with its agent', { skip }, async (t) => {
  const id = 'mdl_01J00000000000000000000000';
  const dir = t.testdir();
  const folder = join(dir, 'models', id);
  await mkdir(folder, { recursive: true });
  // Nobody writes to it: the process loads for ever.
  execFileSync('mkfifo', [join(folder, 'WEIGHTS.json')]);
  const request: TaskRequest = {
    kind: 'serve',
    object_store: { url: pathToFileURL(dir).href, s3_endpoint: null },
    weights: { model: testModel(id), base_model: null },
    threads: 1,
    gpu: null,
    heartbeat_ms: 20,
    retry: { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 },
  };
  await orphan(t, programPath('worker/tasks/main'), JSON.stringify(request));
});

/** Returns whether a process is alive; a zombie is not. */
async function isAlive(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  return stat !== null && stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z';
}
