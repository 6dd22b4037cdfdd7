/** Runs the commands of docs/guide.md against a stack started like `npm start`. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { smallJob } from '../support/specs.js';
import { cleanEnvironment, sampleText } from '../support/stack.js';
import { cannotRead, startReading } from './reader.js';
import { type Block, blocksOf, expectation, type Outcome, runBlocks } from './session.js';

const PAGE = readFileSync(join(projectRoot(), 'docs', 'guide.md'), 'utf8');
const ADDRESS = 'http://127.0.0.1:8080';

type Reader = (blocks: readonly Block[]) => Promise<Outcome[]>;

async function readAll(t: Test, read: Reader, blocks: readonly Block[]): Promise<void> {
  const outcomes = await read(blocks);
  t.equal(outcomes.length, blocks.length, 'every block was reached');
  for (const [index, { output, code }] of outcomes.entries()) {
    const { line, expected, commands } = blocks[index] ?? { line: 0, expected: null, commands: '' };
    t.equal(code, 0, `line ${line}: ${commands}\n${output}`);
    t.match(output, expected === null ? /^$/ : expectation(expected), `line ${line}`);
  }
}

t.test('the guide', { skip: cannotRead, timeout: 900_000 }, async (t) => {
  const { client, cwd, tmp } = await startReading(t);
  const { baseUrl } = client.options;
  const blocks = blocksOf(PAGE.replaceAll(ADDRESS, baseUrl));
  // A user without zerofleet installed.
  const env = { ...cleanEnvironment(), ZEROFLEET_URL: baseUrl, TMPDIR: tmp };
  const read: Reader = (some) => runBlocks(some, '', { cwd, env });
  const before = readdirSync(cwd);
  await t.test('runs', (t) => readAll(t, read, blocks));
  await t.test('runs again on the same stack', (t) => readAll(t, read, blocks));
  t.strictSame(readdirSync(cwd), before, 'it leaves no files in the clone');

  await t.test('does not wait for a job that has ended', async (t) => {
    const { id: dataset } = await client.datasets.create('text', sampleText());
    const { id } = await client.jobs.create(
      smallJob({ name: 'cancelled', dataset, steps: 10_000, ranks: 1 }),
    );
    await client.jobs.cancel(id);
    await client.jobs.wait(id);
    const [first] = blocks;
    const waits = blocks.find(({ commands }) => commands.includes('until_state()'));
    if (!first || !waits) throw new Error('the guide waits for no job');
    const definition = /until_state\(\) \{[\s\S]*?\n\}\n/.exec(waits.commands)?.[0];
    const commands = `${definition}until_state ${id} succeeded`;
    const [, outcome] = await read([first, { line: 0, commands: `${commands}\n`, expected: null }]);
    t.strictSame(outcome, { output: `job ${id}: cancelled\n`, code: 1 });
  });
});
