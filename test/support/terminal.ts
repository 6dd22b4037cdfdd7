/** A terminal as a person sits before it: a shell in a pseudo-terminal of util-linux' `script`, which also records it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Test } from 'tap';
import { WAIT_MS } from '../../platform/testing/waiting.js';

const POLL_MS = 50;
const PROMPT = 'you@here:';
const CTRL_C = '\u0003';
const ESC = String.fromCharCode(0x1b);
const ESCAPE_SEQUENCES = new RegExp(`${ESC}(?:\\[[0-?]*[ -/]*[@-~]|[78=>]|\\([A-Z0-9])`, 'g');

/** Why there can be no terminal here, for a test's `skip`; null: there can. `script` is essential on Debian. */
export function whyNoTerminal(): string | null {
  const { status } = spawnSync('script', ['-qec', 'exit 7', '/dev/null'], { stdio: 'ignore' });
  return status === 7 ? null : 'needs script of util-linux 2.35 or later';
}

export interface TerminalOptions {
  /** Name of its record. */
  name: string;
  /** Where its shell begins, and where the record lies. */
  dir: string;
  env: Record<string, string | undefined>;
}

export class Terminal {
  private readonly child: ChildProcess;
  private readonly file: string;
  /** What was read of the record so far belongs to commands before. */
  private mark = 0;

  /** One that waits for a command, and ends with the test. With `ZF_TEST_RECORDS` its record is kept in that directory. */
  static async open(t: Test, options: TerminalOptions): Promise<Terminal> {
    const terminal = new Terminal(t, options);
    await terminal.see(new RegExp(`${PROMPT} $`));
    return terminal;
  }

  private constructor(t: Test, { name, dir, env }: TerminalOptions) {
    this.file = join(dir, `${name}.typescript`);
    this.child = spawn('script', ['-qfec', 'stty cols 100 rows 30; exec sh -i', this.file], {
      cwd: dir,
      env: { ...env, TERM: 'xterm-256color', SHELL: '/bin/sh', PS1: `${PROMPT} `, ENV: undefined },
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    t.teardown(async () => {
      this.child.stdin?.end();
      this.child.kill('SIGHUP');
      const keep = process.env.ZF_TEST_RECORDS;
      if (keep === undefined) return;
      mkdirSync(keep, { recursive: true });
      copyFileSync(this.file, join(keep, `${name}.typescript`));
    });
  }

  /** Types a command and waits until the shell asks for the next one. Returns what the terminal showed, without escape sequences. */
  async run(command: string): Promise<string> {
    this.type(command);
    await this.see(new RegExp(`${PROMPT} $`));
    return this.text();
  }

  /** Types a command. */
  type(command: string): void {
    this.mark = this.record().length;
    this.child.stdin?.write(`${command}\n`);
  }

  /** Waits until the terminal has shown it since the last command. */
  see(pattern: RegExp): Promise<string> {
    return this.seeThat((shown) => pattern.test(shown), String(pattern));
  }

  /** Waits until it holds for what the terminal has shown since the last command. */
  async seeThat(holds: (shown: string) => boolean, what = String(holds)): Promise<string> {
    for (const deadline = Date.now() + WAIT_MS; ; await sleep(POLL_MS)) {
      const shown = this.text();
      if (holds(shown)) return shown;
      // Beside the message, which is the name of what failed, and one line.
      if (Date.now() > deadline) throw Object.assign(new Error(`waited in vain for ${what}`), { shown });
    }
  }

  /** Presses Ctrl-C and waits for the prompt. */
  async interrupt(): Promise<string> {
    this.child.stdin?.write(CTRL_C);
    await this.see(new RegExp(`${PROMPT} $`));
    return this.text();
  }

  /** As somebody who closes its window. */
  close(): void {
    this.child.kill('SIGKILL');
  }

  /** Everything that it ever showed, as it was written. */
  record(): string {
    // `script` makes it when it begins.
    if (!existsSync(this.file)) return '';
    return readFileSync(this.file, 'utf8').replace(/^Script started[^\n]*\n/, '');
  }

  /** Since the last command. */
  private text(): string {
    return this.record().slice(this.mark).replaceAll(ESCAPE_SEQUENCES, '').replaceAll('\r\n', '\n');
  }
}
