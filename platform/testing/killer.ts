import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * Waits for the end of its input, which only the parent process holds open. Then kills every process whose environment
 * has a given line: daemons, and jobs with all that they have started. Daemons may start others meanwhile.
 */
const SCRIPT = `read -r _
for round in 1 2; do
  for file in $(grep -lzxFs -- "$1" /proc/[0-9]*/environ); do
    pid="\${file#/proc/}"
    kill -KILL "\${pid%/environ}"
  done
done`;

/** Kills the processes of a test's servers at the latest when the test's own process ends, however it does. */
export class Killer {
  private readonly child: ChildProcess;

  /** @param line `NAME=value` in the environment of all of them */
  constructor(line: string) {
    // In its own process group, so that a kill of this one's does not kill it.
    this.child = spawn('/bin/sh', ['-c', SCRIPT, 'sh', line], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
  }

  /** Kills them now. Idempotent. */
  async killAll(): Promise<void> {
    if (this.child.exitCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.stdin?.end();
    await ended;
  }
}
