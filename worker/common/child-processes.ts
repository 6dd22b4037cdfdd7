import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Logger } from '../../platform/logging/logging.js';

/** Starts a program with Node.js, as `fork` does. */
export type Fork = (program: string, args: readonly string[], options: ForkOptions) => ChildProcess;

export interface ChildProcessesOptions {
  /** Absolute paths of the main modules. */
  programs: { rank: string; task: string };
  /** Time after SIGKILL until a process counts as unkillable. */
  kill_ms: number;
  log: Logger;
  /** Replaces Node's `fork`. */
  fork?: Fork;
}

/**
 * Starts and kills this agent's child processes. A process that waits in the kernel for a device or a file system that does not answer
 * (state D) survives SIGKILL. No caller waits for such a process: `kill` reports it, and `problem` makes this machine unfit for new work
 * while the process exists.
 */
export class ChildProcesses {
  private readonly dying = new Map<ChildProcess, NodeJS.Timeout>();
  /** Unkillable processes, each with its description. */
  private readonly unkillable = new Map<ChildProcess, string>();
  private readonly watchers: (() => void)[] = [];

  constructor(private readonly options: ChildProcessesOptions) {}

  /** Description of the unkillable processes; null without any. */
  get problem(): string | null {
    return this.unkillable.size === 0 ? null : [...this.unkillable.values()].join('; ');
  }

  /** Calls the watcher after each change of `problem`. */
  onChange(watcher: () => void): void {
    this.watchers.push(watcher);
  }

  start(program: 'rank' | 'task', env: NodeJS.ProcessEnv): ChildProcess {
    const { programs, fork: start = fork } = this.options;
    return start(programs[program], [], {
      env,
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // Children must not inherit inspector flags and test loaders.
      execArgv: [],
    });
  }

  /**
   * Kills a process with SIGKILL, because a hanging or stopped process would not handle SIGTERM. Idempotent.
   * @param name name of the process in messages
   * @param onUnkillable called with a description if it still exists after `kill_ms`
   */
  kill(child: ChildProcess, name: string, onUnkillable: (problem: string) => void): void {
    child.kill('SIGKILL');
    if (this.dying.has(child)) return;
    const timer = setTimeout(() => this.onTimeout(child, name, onUnkillable), this.options.kill_ms);
    this.dying.set(child, timer);
    child.once('close', () => {
      clearTimeout(timer);
      this.dying.delete(child);
      if (this.unkillable.delete(child)) this.changed();
    });
  }

  private onTimeout(child: ChildProcess, name: string, onUnkillable: (problem: string) => void): void {
    if (child.exitCode !== null || child.signalCode !== null) {
      // It has ended, but a process that it started holds its output open.
      for (const stream of [child.stdout, child.stderr]) stream?.destroy();
      return;
    }
    const { kill_ms, log } = this.options;
    const problem = `${name}, process ${child.pid}, still exists ${kill_ms / 1000} s after SIGKILL${stateOf(child.pid)}`;
    log.error({ problem }, 'a process cannot be killed: this worker takes no new work until it ends');
    this.unkillable.set(child, problem);
    this.changed();
    onUnkillable(problem);
  }

  private changed(): void {
    for (const watcher of this.watchers) watcher();
  }
}

/** Returns the state of a process and the kernel function in which it waits. Reading either does not block. */
function stateOf(pid: number | undefined): string {
  try {
    const state = /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1];
    const place = readFileSync(`/proc/${pid}/wchan`, 'utf8');
    return `, in state ${state}${/^\w{2,}$/.test(place) ? ` (${place})` : ''}`;
  } catch {
    return '';
  }
}
