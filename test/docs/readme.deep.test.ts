/** Runs the training commands of README.md against a stack started like `npm start`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Job } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { cleanEnvironment } from '../support/stack.js';
import { cannotRead, startReading } from './reader.js';
import { blocksOf, runBlocks } from './session.js';

const FILE = join(projectRoot(), 'README.md');
const [, SECTION = ''] = readFileSync(FILE, 'utf8').split('## Train something');

t.test('the job of the README', { skip: cannotRead }, async (t) => {
  const { client, cwd } = await startReading(t);
  const { baseUrl } = client.options;
  const blocks = blocksOf(SECTION.replaceAll('http://127.0.0.1:8080', baseUrl));
  t.equal(blocks.length, 1);
  // curl prints progress on standard error.
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
