/** docs/guide.md, command by command, against a stack as `npm start` runs it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../platform/root.js';
import { cleanEnvironment } from '../e2e/stack.js';
import { cannotRead, startReading } from './reader.js';
import { blocksOf, expectation, runBlocks } from './session.js';

const PAGE = readFileSync(join(projectRoot(), 'docs', 'guide.md'), 'utf8');
const ADDRESS = 'http://127.0.0.1:8080';

t.test('the guide', { skip: cannotRead, timeout: 600_000 }, async (t) => {
  const { client, cwd } = await startReading(t);
  const { baseUrl } = client.options;

  const blocks = blocksOf(PAGE.replaceAll(ADDRESS, baseUrl));
  const program = join(projectRoot(), 'dist', 'cli', 'main.js');
  const start = `import('${program}').then(({ main }) => main(process.argv.slice(1)))`;
  const outcomes = await runBlocks(blocks, `zerofleet() { node -e "${start}" -- "$@"; }`, {
    cwd,
    env: { ...cleanEnvironment(), ZEROFLEET_URL: baseUrl },
  });
  t.equal(outcomes.length, blocks.length, 'every block was reached');
  for (const [index, { output, code }] of outcomes.entries()) {
    const { line, expected, commands } = blocks[index] ?? { line: 0, expected: null, commands: '' };
    t.equal(code, 0, `line ${line}: ${commands}\n${output}`);
    t.match(output, expected === null ? /^$/ : expectation(expected), `line ${line}`);
  }
});
