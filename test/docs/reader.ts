import { copyFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Test } from 'tap';
import type { Zerofleet } from '../../clients/typescript/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { ensurePrograms } from '../../platform/testing/programs.js';
import { cleanEnvironment, startStack } from '../support/stack.js';
import { type Block, blocksOf, expectation, type Outcome, runBlocks } from './session.js';

/** Address of a stack in pages. */
const ADDRESS = 'http://127.0.0.1:8080';

/** Reason why the commands of a page cannot run here, or false. */
export const cannotRead = (await ensurePrograms(['curl'], ['curl', 'ca-certificates'])) ?? false;

/**
 * A folder like a clone in which `npm start` runs: the key in the data directory, and the README as training text.
 * `bin` has the command that `npm link` installs.
 */
export async function startReading(t: Test): Promise<{ client: Zerofleet; cwd: string; bin: string }> {
  const { client, data_dir } = await startStack(t);
  const dir = t.testdir({ clone: {}, bin: {} });
  const [cwd, bin] = [join(dir, 'clone'), join(dir, 'bin')];
  symlinkSync(data_dir, join(cwd, '.zerofleet'));
  writeFileSync(join(data_dir, 'api-key'), client.options.apiKey ?? '');
  symlinkSync(join(projectRoot(), 'tools', 'zerofleet.mjs'), join(bin, 'zerofleet'));
  copyFileSync(join(projectRoot(), 'README.md'), join(cwd, 'README.md'));
  return { client, cwd, bin };
}

interface Reading {
  client: Zerofleet;
  /** Folder like a clone, in which the commands run. */
  cwd: string;
  blocks: Block[];
  /** Runs blocks, without comparing their output. */
  run(blocks: readonly Block[]): Promise<Outcome[]>;
  /** Runs blocks, and checks that their output is that of the page. */
  read(t: Test, blocks: readonly Block[]): Promise<void>;
}

/** Starts a stack, and prepares the environment of a page's commands. */
export async function readPage(t: Test, page: string): Promise<Reading> {
  const { client, cwd, bin } = await startReading(t);
  const { baseUrl } = client.options;
  const PATH = `${bin}${delimiter}${process.env.PATH}`;
  const env = { ...cleanEnvironment(), PATH, ZEROFLEET_URL: baseUrl };
  const run = (blocks: readonly Block[]) => runBlocks(blocks, '', { cwd, env });
  const read = async (t: Test, blocks: readonly Block[]) => {
    const outcomes = await run(blocks);
    t.equal(outcomes.length, blocks.length, 'every block was reached');
    for (const [index, { output, code }] of outcomes.entries()) {
      const { line, expected, commands } = blocks[index] ?? { line: 0, expected: null, commands: '' };
      t.equal(code, 0, `line ${line}: ${commands}\n${output}`);
      t.match(output, expected === null ? /^$/ : expectation(expected), `line ${line}`);
    }
  };
  return { client, cwd, blocks: blocksOf(page.replaceAll(ADDRESS, baseUrl)), run, read };
}
