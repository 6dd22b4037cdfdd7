import { type ChildProcess, fork } from 'node:child_process';
import type { Writable } from 'node:stream';

/** Message of a program that is ready. */
interface ReadyMessage {
  kind: 'ready';
}

interface ChildProgramOptions {
  /** Name for messages: `api`, `worker`. */
  name: string;
  /** Absolute path of a compiled module. */
  program: string;
  env: Record<string, string>;
  /** Destination of its output; this process's standard error when absent. */
  output?: Writable;
}

const START_TIMEOUT_MS = 60_000;
/** Long, because a draining worker saves a checkpoint first. */
const STOP_TIMEOUT_MS = 60_000;

/**
 * A program of the stack as a child process in its own process group. So Ctrl-C in a terminal reaches only the parent,
 * which then stops its children in order. If the parent dies without doing so, the closed channel tells them to exit.
 */
export class ChildProgram {
  /** Resolves when the process has exited. */
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  private readonly child: ChildProcess;
  private readonly name: string;

  private constructor({ name, program, env, output }: ChildProgramOptions) {
    this.name = name;
    this.child = fork(program, [], {
      detached: true,
      execArgv: ['--enable-source-maps'],
      env: { ...process.env, ...env },
      stdio: ['ignore', output ? 'pipe' : 2, output ? 'pipe' : 2, 'ipc'],
    });
    this.exited = new Promise((resolve) => {
      this.child.once('exit', (code, signal) => resolve({ code, signal }));
      this.child.once('error', () => resolve({ code: null, signal: null }));
    });
    if (output)
      for (const stream of [this.child.stdout, this.child.stderr]) stream?.pipe(output, { end: false });
  }

  /** Starts a program and waits until it is ready. @throws Error when it exits or times out instead */
  static async start(options: ChildProgramOptions): Promise<ChildProgram> {
    const program = new ChildProgram(options);
    try {
      await program.untilReady();
      return program;
    } catch (error) {
      await program.stop();
      throw error;
    }
  }

  private async untilReady(): Promise<void> {
    const timeout = AbortSignal.timeout(START_TIMEOUT_MS);
    const ready = new Promise<void>((resolve, reject) => {
      const fail = (reason: string) => reject(new Error(`the ${this.name} ${reason}`));
      this.child.on('message', (message: ReadyMessage) => {
        if (message.kind === 'ready') resolve();
      });
      timeout.addEventListener('abort', () => fail(`was not ready within ${START_TIMEOUT_MS / 1000} s`));
      void this.exited.then(({ code, signal }) =>
        fail(`ended while starting (${signal ?? `exit code ${code}`})`),
      );
    });
    await ready;
  }

  /** Stops it by SIGTERM, and by SIGKILL after a timeout. Idempotent. */
  async stop(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGTERM');
    const timer = setTimeout(() => this.child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.exited;
    clearTimeout(timer);
  }
}
