import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Logger } from '../../platform/logging/logging.js';

/** Starts a program with Node.js, as `fork` does. */
export type Fork = (program: string, args: readonly string[], options: ForkOptions) => ChildProcess;

type Program = 'rank' | 'task';

export interface ChildProcessesOptions {
  /** Absolute paths of the main modules. */
  programs: Record<Program, string>;
  /** Time after SIGKILL until a process counts as unkillable. */
  kill_ms: number;
  log: Logger;
  /** Replaces Node's `fork`. */
  fork?: Fork;
}

/**
 * Starts and kills this agent's child processes. A process that waits in the kernel for a device or a file system that
 * does not answer (state D) survives SIGKILL. No caller waits for such a process: `kill` reports it, and `problem`
 * makes this machine unfit for new work while the process exists.
 */
export class ChildProcesses {
  private readonly dying = new Map<ChildProcess, NodeJS.Timeout>();
  /** Unkillable processes, each with its description. */
  private readonly unkillable = new Map<ChildProcess, string>();
  private readonly watchers: (() => void)[] = [];
  /** Processes that wait for their first message. */
  private readonly waiting = new Set<{ key: string; child: ChildProcess }>();

  constructor(private readonly options: ChildProcessesOptions) {}

  /** Description of the unkillable processes; null without any. */
  get problem(): string | null {
    return this.unkillable.size === 0 ? null : [...this.unkillable.values()].join('; ');
  }

  /** Calls the watcher after each change of `problem`. */
  onChange(watcher: () => void): void {
    this.watchers.push(watcher);
  }

  /**
   * Starts processes before there is work for them: a rank loads its program and the native core in about the time in
   * which its data is prepared. `start` takes them when program and environment are the same.
   * @returns function that ends those of them that were not taken
   */
  prepare(program: Program, env: NodeJS.ProcessEnv, count: number): () => void {
    const key = keyOf(program, env);
    const prepared = Array.from({ length: count }, () => ({ key, child: this.fork(program, env) }));
    for (const entry of prepared) {
      this.waiting.add(entry);
      for (const event of ['error', 'exit']) entry.child.on(event, () => this.waiting.delete(entry));
    }
    return () => {
      for (const entry of prepared)
        if (this.waiting.delete(entry)) this.kill(entry.child, `${program} without work`, () => undefined);
    };
  }

  start(program: Program, env: NodeJS.ProcessEnv): ChildProcess {
    const key = keyOf(program, env);
    for (const entry of this.waiting) {
      if (entry.key !== key) continue;
      this.waiting.delete(entry);
      return entry.child;
    }
    return this.fork(program, env);
  }

  private fork(program: Program, env: NodeJS.ProcessEnv): ChildProcess {
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

function keyOf(program: Program, env: NodeJS.ProcessEnv): string {
  return JSON.stringify([program, env]);
}

/** Returns the state of a process and the kernel function in which it waits. Reading either does not block. */
function stateOf(pid: number | undefined): string {
  try {
    const state = /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1];
    const channel = readFileSync(`/proc/${pid}/wchan`, 'utf8');
    return `, in state ${state}${/^\w{2,}$/.test(channel) ? ` (${channel})` : ''}`;
  } catch {
    return '';
  }
}
