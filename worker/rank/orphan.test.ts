/** Tests that a stopped rank ends with its agent, which its channel cannot do. */
import { fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';

const built = existsSync(join(projectRoot(), 'native', 'build', 'zerofleet.node'));
const skip =
  process.platform !== 'linux' ? 'supported on Linux only' : built ? false : 'the native core is not built';

t.test('a stopped child ends with a parent that was killed', { skip }, async (t) => {
  const parent = fork(fileURLToPath(new URL('../testing/orphan-main.js', import.meta.url)), ['parent'], {
    execArgv: [],
  });
  t.teardown(() => parent.kill('SIGKILL'));
  const { armed, pid } = await new Promise<{ armed: boolean; pid: number }>((resolve) =>
    parent.once('message', (message) => resolve(message as { armed: boolean; pid: number })),
  );
  t.ok(armed);
  process.kill(pid, 'SIGSTOP');
  parent.kill('SIGKILL');
  // No event reports the end; the test's own timeout covers a process that stays.
  while (await isAlive(pid)) await delay(10);
});

/** Returns whether a process is alive; a zombie is not. */
async function isAlive(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  return stat !== null && stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z';
}
