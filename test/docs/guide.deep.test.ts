/** Runs the commands of docs/guide.md against a stack started like `npm start`. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { smallJob } from '../support/specs.js';
import { sampleText } from '../support/stack.js';
import { cannotRead, readPage } from './reader.js';

const PAGE = readFileSync(join(projectRoot(), 'docs', 'guide.md'), 'utf8');

t.test('the guide', { skip: cannotRead }, async (t) => {
  const { client, cwd, blocks, run, read } = await readPage(t, PAGE);
  const before = readdirSync(cwd);
  await t.test('runs', (t) => read(t, blocks));
  await t.test('runs again on the same stack', (t) => read(t, blocks));
  t.strictSame(readdirSync(cwd), before, 'it leaves no files in the clone');

  await t.test('does not wait for a job that has ended', async (t) => {
    const { id: dataset } = await client.datasets.create('text', sampleText());
    const { id } = await client.jobs.create(
      smallJob({ name: 'cancelled', dataset, steps: 10_000, ranks: 1 }),
    );
    await client.jobs.cancel(id);
    await client.jobs.wait(id);
    const first = blocks.find(({ commands }) => commands.includes('field()'));
    const waits = blocks.find(({ commands }) => commands.includes('until_state()'));
    if (!first || !waits) throw new Error('the guide waits for no job');
    const definition = /until_state\(\) \{[\s\S]*?\n\}\n/.exec(waits.commands)?.[0];
    const commands = `${definition}until_state ${id} succeeded`;
    const [, outcome] = await run([first, { line: 0, commands: `${commands}\n`, expected: null }]);
    t.strictSame(outcome, { output: `job ${id}: cancelled\n`, code: 1 });
  });
});
