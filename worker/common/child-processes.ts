import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Logger } from '../../platform/logging/logging.js';

/** Starts a program with Node.js, as `fork` does. */
export type Fork = (program: string, args: readonly string[], options: ForkOptions) => ChildProcess;

export interface ChildProcessesOptions {
  /** Absolute paths of the main modules. */
  programs: { rank: string; task: string };
  /** From SIGKILL until a process that is still there counts as one that can't be killed. */
  kill_ms: number;
  log: Logger;
  /** What starts them, where it is not Node.js itself. */
  fork?: Fork;
}

/**
 * Starts this agent's child processes, and ends them. A process that waits in the kernel for a device or a file system that does not answer
 * (state D) outlives SIGKILL. Nobody waits for such a one: `kill` tells of it, and `problem` says that this machine is not fit for
 * anything new for as long as the process is there.
 */
export class ChildProcesses {
  private readonly dying = new Map<ChildProcess, NodeJS.Timeout>();
  /** Those that can't be killed, and what is said of them. */
  private readonly undead = new Map<ChildProcess, string>();
  private readonly watchers: (() => void)[] = [];

  constructor(private readonly options: ChildProcessesOptions) {}

  /** In words; null while every process ends that was killed. */
  get problem(): string | null {
    return this.undead.size === 0 ? null : [...this.undead.values()].join('; ');
  }

  /** Called whenever `problem` has changed. */
  onChange(watcher: () => void): void {
    this.watchers.push(watcher);
  }

  start(program: 'rank' | 'task', env: NodeJS.ProcessEnv): ChildProcess {
    const { programs, fork: start = fork } = this.options;
    return start(programs[program], [], {
      env,
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // Inspector flags and test loaders of this process are none of a child's business.
      execArgv: [],
    });
  }

  /**
   * Ends a process at once. Not by SIGTERM: a hanging or stopped process would not handle it. Idempotent.
   * @param name of the process, for people
   * @param onUndead called when it is still there after `kill_ms`, with what it is
   */
  kill(child: ChildProcess, name: string, onUndead: (problem: string) => void): void {
    child.kill('SIGKILL');
    if (this.dying.has(child)) return;
    const timer = setTimeout(() => this.late(child, name, onUndead), this.options.kill_ms);
    this.dying.set(child, timer);
    child.once('close', () => {
      clearTimeout(timer);
      this.dying.delete(child);
      if (this.undead.delete(child)) this.changed();
    });
  }

  private late(child: ChildProcess, name: string, onUndead: (problem: string) => void): void {
    if (child.exitCode !== null || child.signalCode !== null) {
      // It is gone, and what it has started holds its output open.
      for (const stream of [child.stdout, child.stderr]) stream?.destroy();
      return;
    }
    const { kill_ms, log } = this.options;
    const problem = `${name}, process ${child.pid}, is there ${kill_ms / 1000} s after SIGKILL${stateOf(child.pid)}`;
    log.error({ problem }, 'a process can not be killed: this worker takes nothing new until it is gone');
    this.undead.set(child, problem);
    this.changed();
    onUndead(problem);
  }

  private changed(): void {
    for (const watcher of this.watchers) watcher();
  }
}

/** What Linux says of a process, and the kernel function in which it waits; reading either waits for nothing. */
function stateOf(pid: number | undefined): string {
  try {
    const state = /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1];
    const place = readFileSync(`/proc/${pid}/wchan`, 'utf8');
    return `, in state ${state}${/^\w{2,}$/.test(place) ? ` (${place})` : ''}`;
  } catch {
    return '';
  }
}
