import { fork } from 'node:child_process';
import { createLogger } from '../../platform/logging/logging.js';
import { ChildProcesses, type ChildProcessesOptions, type Fork } from '../shared/child-processes.js';

const log = createLogger({ level: 'silent', name: 'test' });

export function testProcesses(changes: Partial<ChildProcessesOptions> = {}): ChildProcesses {
  return new ChildProcesses({ programs: { rank: '', task: '' }, kill_ms: 60_000, log, ...changes });
}

/**
 * Simulates processes in uninterruptible sleep: SIGKILL has no effect until they are released.
 * @returns the fork function, and the function that releases them
 */
export function unkillableProcesses(): { fork: Fork; release(): void } {
  const waiting: (() => void)[] = [];
  const start: Fork = (program, args, options) => {
    const child = fork(program, args, options);
    const kill = child.kill.bind(child);
    child.kill = (signal) => {
      waiting.push(() => kill(signal));
      return true;
    };
    return child;
  };
  const release = () => {
    for (const end of waiting.splice(0)) end();
  };
  return { fork: start, release };
}
