import { copyFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { Zerofleet } from '../../client/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { ensurePrograms } from '../../platform/testing/programs.js';
import { startStack } from '../support/stack.js';

/** Reason why the commands of a page cannot run here, or false. */
export const cannotRead = (await ensurePrograms(['curl'], ['curl', 'ca-certificates'])) ?? false;

/** A folder like a clone in which `npm start` runs: the key in the data directory, the command line, and the README as training text. */
export async function startReading(t: Test): Promise<{ client: Zerofleet; cwd: string; tmp: string }> {
  const { client, data_dir } = await startStack(t);
  const dir = t.testdir({ clone: {}, tmp: {} });
  const [cwd, tmp] = [join(dir, 'clone'), join(dir, 'tmp')];
  symlinkSync(data_dir, join(cwd, '.zerofleet'));
  writeFileSync(join(data_dir, 'api-key'), client.options.apiKey);
  symlinkSync(join(projectRoot(), 'tools'), join(cwd, 'tools'));
  copyFileSync(join(projectRoot(), 'README.md'), join(cwd, 'README.md'));
  return { client, cwd, tmp };
}
