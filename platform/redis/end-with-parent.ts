import { spawn } from 'node:child_process';

/** Waits for the end of its input, which only this process holds open, and asks the other process to end. */
const WATCHER = 'read -r _; kill -TERM "$1"';

/**
 * Has a child process asked to end (SIGTERM) when this process dies, however that happens. A shell in a process group of its own waits
 * for it, so that what kills this process with its group does not kill the shell.
 * @param pid of the child
 * @param exited resolves when the child has ended; its id may then be another process's
 */
export function endWithParent(pid: number, exited: Promise<void>): void {
  const shell = spawn('/bin/sh', ['-c', WATCHER, 'sh', String(pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // Without a shell the child outlives this process, and the next start ends it.
  shell.on('error', () => undefined);
  void exited.then(() => shell.kill('SIGKILL'));
}
