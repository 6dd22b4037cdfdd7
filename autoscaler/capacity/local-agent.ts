import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

export interface LocalAgentOptions {
  /** Absolute path of the worker's main module. */
  program: string;
  env: Record<string, string | undefined>;
}

/** An agent saves and hands back its jobs first, so this is long. */
const STOP_TIMEOUT_MS = 55_000;

/** A worker agent as a child process; it ends by itself when this process is gone. */
export class LocalAgent {
  /** Resolves when the process is gone. */
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
    // Whichever comes second is of no interest.
    failed.catch(() => undefined);
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** SIGTERM: saves and hands back what runs there; by force when that takes too long. Idempotent. */
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
