/**
 * A new user's way, in seconds since `npm start`: `npm run bench -- new-user`.
 *
 * It starts stacks with empty data directories and walks through the console in Chromium, as fast as the pages allow.
 * It takes the long way (test/console/new-user.ts) and the shortest one to an adapter (test/console/first-lora.ts).
 * Installation and build are not included; `tools/dev/fresh-machine.sh` measures them.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium, type Page } from 'playwright-core';
import { Zerofleet } from '../clients/typescript/index.js';
import { programPath } from '../platform/process/programs.js';
import { firstLora } from '../test/console/first-lora.js';
import { walk } from '../test/console/new-user.js';
import { report } from './report.js';

const API_KEY = 'benchmark-key-0123456789abcdef';

type Stages = Record<string, number>;
/** Called after each stage. */
type Done = (stage: string) => void;

const seconds: Stages = {};
await onNewStack(seconds, (page, address, done) => walk({ page, address, done }));
const lora: Stages = {};
const { actions, red } = await onNewStack(lora, async (page, address, done) => {
  const first = await firstLora(page, address);
  done('downloaded');
  return first;
});
report('new-user', {
  seconds_after_start: seconds,
  first_lora: { seconds_after_start: lora, actions: actions.length, red_texts: red },
});

/** @param stages gets the seconds of each stage since the start of the stack */
async function onNewStack<T>(
  stages: Stages,
  way: (page: Page, address: string, done: Done) => Promise<T>,
): Promise<T> {
  const began = performance.now();
  const done: Done = (stage) => {
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
      return await way(await browser.newPage(), url, done);
    } finally {
      await browser.close();
    }
  } finally {
    const ended = once(stack, 'exit');
    stack.kill('SIGTERM');
    await ended;
    await rm(directory, { recursive: true, force: true });
  }
}

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
