/** The commands of README.md that train something, against a stack as `npm start` runs it. */
import { copyFileSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Job } from '../../contracts/index.js';
import { projectRoot } from '../../platform/root.js';
import { ensurePrograms } from '../../platform/testing/programs.js';
import { cleanEnvironment, startStack } from '../e2e/stack.js';
import { blocksOf, runBlocks } from './session.js';

const missing = await ensurePrograms(['curl'], ['curl', 'ca-certificates']);
const FILE = join(projectRoot(), 'README.md');
const [, SECTION = ''] = readFileSync(FILE, 'utf8').split('## Train something');

t.test('the job of the README', { skip: missing ?? false, timeout: 300_000 }, async (t) => {
  const { client, data_dir } = await startStack(t);
  const { baseUrl, apiKey } = client.options;
  const cwd = t.testdir();
  symlinkSync(data_dir, join(cwd, '.zerofleet'));
  writeFileSync(join(data_dir, 'api-key'), apiKey);
  copyFileSync(FILE, join(cwd, 'README.md'));
  const blocks = blocksOf(SECTION.replaceAll('http://127.0.0.1:8080', baseUrl));
  t.equal(blocks.length, 1);
  // curl shows how far it is on standard error unless that is told to nobody.
  const [outcome] = await runBlocks(blocks, 'exec 2> errors.txt', { cwd, env: cleanEnvironment() });
  t.equal(outcome?.code, 0, readFileSync(join(cwd, 'errors.txt'), 'utf8'));
  const job = JSON.parse(outcome?.output ?? '') as Job;
  t.match(job, {
    state: 'queued',
    spec: { train: { steps: 200 }, resources: { ranks: { preferred: 2, max: 4 } } },
  });
  const running = await client.jobs.until(job.id, ({ progress }) => progress.step >= 3);
  t.equal(running.world_size, 2);
  await client.jobs.cancel(job.id);
});
