import { spawn } from 'node:child_process';

/** Waits for the end of its input, which only this process holds open, then sends SIGTERM to the child. */
const WATCHER = 'read -r _; kill -TERM "$1"';

/**
 * Sends SIGTERM to a child process when this process exits in any way. A shell in its own process group waits
 * for that, so that a kill of this process group does not kill the shell.
 * @param pid of the child
 * @param exited resolves when the child has exited; its id may be reused afterwards
 */
export function endWithParent(pid: number, exited: Promise<void>): void {
  const shell = spawn('/bin/sh', ['-c', WATCHER, 'sh', String(pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // Without a shell the child may be orphaned; the next start stops it.
  shell.on('error', () => undefined);
  void exited.then(() => shell.kill('SIGKILL'));
}
