/** A real terminal: a shell in a pseudo-terminal of util-linux' `script`, which also records it. */
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

/** Reason why no terminal is available, for a test's `skip`; null if one is. `script` is essential on Debian. */
export function whyNoTerminal(): string | null {
  const { status } = spawnSync('script', ['-qec', 'exit 7', '/dev/null'], { stdio: 'ignore' });
  return status === 7 ? null : 'needs script of util-linux 2.35 or later';
}

interface TerminalOptions {
  /** Name of its record. */
  name: string;
  /** Working directory of its shell and location of the record. */
  dir: string;
  env: Record<string, string | undefined>;
}

export class Terminal {
  private readonly child: ChildProcess;
  private readonly file: string;
  /** End of the record at the last command. */
  private mark = 0;

  /**
   * Opens a terminal with a prompt; it ends with the test. With `ZF_TEST_RECORDS` its record is kept in that directory.
   */
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

  /** Types a command and waits for the next prompt. Returns the terminal's output without escape sequences. */
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

  /** Waits until the output since the last command matches. */
  see(pattern: RegExp): Promise<string> {
    return this.seeThat((shown) => pattern.test(shown), String(pattern));
  }

  /** Waits until the output since the last command satisfies a predicate. */
  async seeThat(holds: (shown: string) => boolean, title = String(holds)): Promise<string> {
    for (const deadline = Date.now() + WAIT_MS; ; await sleep(POLL_MS)) {
      const shown = this.text();
      if (holds(shown)) return shown;
      // One line, in addition to the message with the name of the failed check.
      if (Date.now() > deadline) throw Object.assign(new Error(`timed out waiting for ${title}`), { shown });
    }
  }

  /** Presses Ctrl-C and waits for the prompt. */
  async interrupt(): Promise<string> {
    this.child.stdin?.write(CTRL_C);
    await this.see(new RegExp(`${PROMPT} $`));
    return this.text();
  }

  /** Closes the terminal like its window. */
  close(): void {
    this.child.kill('SIGKILL');
  }

  /** The complete raw output. */
  record(): string {
    // `script` creates it at its start.
    if (!existsSync(this.file)) return '';
    return readFileSync(this.file, 'utf8').replace(/^Script started[^\n]*\n/, '');
  }

  /** Output since the last command. */
  private text(): string {
    return this.record().slice(this.mark).replaceAll(ESCAPE_SEQUENCES, '').replaceAll('\r\n', '\n');
  }
}
