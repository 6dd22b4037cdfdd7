import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

interface LocalAgentOptions {
  /** Absolute path of the worker's main module. */
  program: string;
  env: Record<string, string | undefined>;
}

/** Long enough for an agent to save and return its jobs. */
const STOP_TIMEOUT_MS = 55_000;

/** Worker agent as a child process. It exits by itself when this process is gone. */
export class LocalAgent {
  /** Resolves when the process has exited. */
  readonly exited: Promise<void>;
  private readonly child: ChildProcess;
  private stopping: Promise<void> | null = null;

  constructor({ program, env }: LocalAgentOptions) {
    this.child = spawn(process.execPath, ['--enable-source-maps', program], {
      env,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const failed = once(this.child, 'error').then(() => undefined);
    this.exited = Promise.race([once(this.child, 'exit').then(() => undefined), failed]);
    // The later of the two events is ignored.
    failed.catch(() => undefined);
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /**
   * Sends SIGTERM, on which the agent saves and returns its jobs, and SIGKILL after a timeout. Idempotent.
   */
  stop(): Promise<void> {
    this.stopping ??= this.end();
    return this.stopping;
  }

  private async end(): Promise<void> {
    this.child.kill('SIGTERM');
    const force = setTimeout(() => this.child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.exited;
    clearTimeout(force);
  }
}
