/** The whole stack as a user starts it: real processes, its own data directory, accessed over HTTP only. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import { Zerofleet } from '../../clients/typescript/index.js';
import { programPath } from '../../platform/process/programs.js';
import { projectRoot } from '../../platform/process/root.js';
import { WAIT_MS } from '../../platform/testing/waiting.js';

const API_KEY = 'end-to-end-test-key-0123456789';
const KEPT_LINES = 200;

/** A test, or a program that ends what it has started. */
export type Owner = Pick<Test, 'teardown'>;

export interface TestStack {
  client: Zerofleet;
  /** The process of `npm start`; all others descend from it. */
  pid: number;
  data_dir: string;
  /** Its last output lines, for messages of failed tests. */
  output(): string;
  /** SIGTERM, as by a service manager; resolves with the exit code. Idempotent. */
  stop(): Promise<number | null>;
}

export interface StackOptions {
  /** ZEROFLEET_* and AWS_* variables in addition to the defaults. */
  env?: Record<string, string>;
  args?: readonly string[];
  /** Program and its first arguments; the compiled one on this Node.js when absent. */
  command?: readonly [program: string, ...args: string[]];
  /** Kept after the test, for another start; a new temporary directory when absent. */
  data_dir?: string;
}

/** The environment without settings of the developer. */
export function cleanEnvironment(): Record<string, string | undefined> {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^(ZEROFLEET_|AWS_|NODE_OPTIONS|TAP)/.test(name),
  );
  return Object.fromEntries(entries);
}

function waitForReady(child: ChildProcess, onLine: (line: string) => void): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the stack was not ready in time')), WAIT_MS);
    child.once('exit', (code, signal) =>
      reject(new Error(`the stack ended at its start: ${code ?? signal}`)),
    );
    for (const stream of [child.stdout, child.stderr]) {
      if (!stream) continue;
      createInterface({ input: stream }).on('line', (line) => {
        onLine(line);
        const url = /^ready (http:\S+)$/.exec(line)?.[1];
        if (!url) return;
        clearTimeout(timer);
        resolve(url);
      });
    }
  });
}

function stopper(child: ChildProcess): () => Promise<number | null> {
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  return async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), WAIT_MS);
    const code = await exited;
    clearTimeout(timer);
    return code;
  };
}

/** Starts a stack that ends with the test. */
export async function startStack(t: Owner, options: StackOptions = {}): Promise<TestStack> {
  const dataDir = options.data_dir ?? mkdtempSync(join(tmpdir(), 'zf-e2e-'));
  const compiled = programPath('ops/stack/main');
  const [program, ...args] = options.command ?? [process.execPath, compiled];
  const child = spawn(program, [...args, ...(options.args ?? [])], {
    env: {
      ...cleanEnvironment(),
      ZEROFLEET_PORT: '0',
      ZEROFLEET_DATA_DIR: dataDir,
      ZEROFLEET_API_KEY: API_KEY,
      ZEROFLEET_LOG_LEVEL: 'warn',
      ...options.env,
    },
    // The stack ends when this channel closes, so that nothing outlives a killed test process.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const lines: string[] = [];
  const output = () => lines.join('\n');
  const stop = stopper(child);
  t.teardown(async () => {
    await stop();
    if (!options.data_dir) rmSync(dataDir, { recursive: true, force: true });
  });
  const keep = (line: string) => {
    lines.push(line);
    if (lines.length > KEPT_LINES) lines.shift();
  };
  const url = await waitForReady(child, keep).catch((error: Error) => {
    throw new Error(`${error.message}\n${output()}`);
  });
  return {
    client: new Zerofleet({ baseUrl: url, apiKey: API_KEY }),
    pid: child.pid as number,
    data_dir: dataDir,
    output,
    stop,
  };
}

/** Real text with some structure, the same on every machine. */
export function sampleText(): string {
  return readFileSync(join(projectRoot(), 'openapi.yaml'), 'utf8').slice(0, 40_000);
}
