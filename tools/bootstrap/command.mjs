import { spawn } from 'node:child_process';
import { createWriteStream, mkdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { SetupError } from './errors.mjs';
import { logDir, root } from './paths.mjs';

const TAIL_LINES = 40;
const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Commands in progress. They end with this process, so that a test run that is stopped leaves none behind. */
const running = new Set();

function endAll() {
  for (const child of running) child.kill();
}

function endOnSignal() {
  process.exit(1);
}

function addRunning(child) {
  if (running.size === 0) {
    process.on('exit', endAll);
    for (const signal of ENDING_SIGNALS) process.on(signal, endOnSignal);
  }
  running.add(child);
}

function removeRunning(child) {
  if (!running.delete(child) || running.size > 0) return;
  process.off('exit', endAll);
  for (const signal of ENDING_SIGNALS) process.off(signal, endOnSignal);
}

/**
 * Runs a command and resolves with its exit code and its whole output.
 * @param {string[]} argv program and arguments, without a shell
 * @param {{cwd?: string, env?: Record<string, string>, timeout_ms?: number, onLine?: (line: string) => void}} [options]
 *   `cwd`: the project's root when absent; after `timeout_ms` the command is killed
 * @returns {Promise<{code: number, output: string}>} code is 127 for a missing program, 128 when a signal ended it
 */
export function capture(argv, { cwd = root, env = {}, timeout_ms, onLine } = {}) {
  return new Promise((resolve) => {
    const [program, ...args] = argv;
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeout_ms,
      killSignal: 'SIGKILL',
    });
    addRunning(child);
    let output = '';
    let pending = '';
    const take = (chunk) => {
      output += chunk;
      if (!onLine) return;
      const lines = (pending + chunk).split('\n');
      pending = lines.pop() ?? '';
      lines.forEach(onLine);
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    child.on('error', (error) => {
      removeRunning(child);
      resolve({ code: 127, output: `${output}${error.message}\n` });
    });
    child.on('close', (code) => {
      removeRunning(child);
      if (pending) onLine?.(pending);
      resolve({ code: code ?? 128, output });
    });
  });
}

/**
 * Runs a set-up command silently: its output goes to a log file, and its last lines into the error if it fails.
 * @param {string} logName file name under .build/logs, without extension
 * @param {string[]} argv
 * @param {Parameters<typeof capture>[1]} [options]
 */
export async function runLogged(logName, argv, options = {}) {
  mkdirSync(logDir, { recursive: true });
  const logFile = join(logDir, `${logName}.log`);
  const log = createWriteStream(logFile);
  const { code, output } = await capture(argv, options);
  await new Promise((resolve) => log.end(`$ ${argv.join(' ')}\n${output}`, resolve));
  if (code === 0) return output;
  const tail = output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
  throw new SetupError(
    `${tail}\n\nThis command failed with exit code ${code} (full output: ${relative(root, logFile)}):\n  ${argv.join(' ')}`,
  );
}
