/**
 * A new user's way, in seconds since `npm start`: `npm run bench -- new-user`.
 *
 * It starts a stack with an empty data directory and walks through the console in Chromium (test/console/new-user.ts),
 * as fast as the pages allow. What was installed and built is there already; `tools/dev/fresh-machine.sh` measures
 * that.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';
import { Zerofleet } from '../clients/typescript/index.js';
import { programPath } from '../platform/process/programs.js';
import { walk } from '../test/console/new-user.js';
import { report } from './report.js';

const API_KEY = 'benchmark-key-0123456789abcdef';

const began = performance.now();
const stages: Record<string, number> = {};
const done = (stage: string) => {
  stages[stage.replaceAll(' ', '_')] = Number(((performance.now() - began) / 1000).toFixed(1));
};

const directory = await mkdtemp(join(tmpdir(), 'zf-bench-new-user-'));
const stack = spawn(process.execPath, [programPath('ops/stack/main')], {
  env: {
    ...process.env,
    ZEROFLEET_DATA_DIR: directory,
    ZEROFLEET_PORT: '0',
    ZEROFLEET_API_KEY: API_KEY,
    ZEROFLEET_LOG_LEVEL: 'warn',
  },
  stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
});
try {
  const baseUrl = await addressOf(stack);
  done('started');
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  try {
    const { url } = await new Zerofleet({ baseUrl, apiKey: API_KEY }).sessions.address();
    await walk({ page: await browser.newPage(), address: url, done });
  } finally {
    await browser.close();
  }
} finally {
  const ended = once(stack, 'exit');
  stack.kill('SIGTERM');
  await ended;
  await rm(directory, { recursive: true, force: true });
}
report('new-user', { seconds_after_start: stages });

/** Waits for the line with the address. @throws if the stack ends before */
function addressOf({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('the output is not read');
  return new Promise((resolve, reject) => {
    const lines = createInterface({ input: stdout });
    lines.on('line', (line) => {
      const url = /^ready (http:\S+)$/.exec(line)?.[1];
      if (url !== undefined) resolve(url);
    });
    lines.on('close', () => reject(new Error('the stack ended at its start')));
  });
}
