import { tmpdir } from 'node:os';
import t from 'tap';
import { blocksOf, expectation, runBlocks } from './session.js';

const PAGE = `# A page

\`\`\`sh
a=1
\`\`\`

\`\`\`json
{}
\`\`\`

\`\`\`sh
echo $a
echo second
\`\`\`
\`\`\`text
…
second
\`\`\`
`;

t.test('the blocks of a page', async (t) => {
  t.strictSame(blocksOf(PAGE), [
    { line: 3, commands: 'a=1\n', expected: null },
    { line: 11, commands: 'echo $a\necho second\n', expected: '…\nsecond\n' },
  ]);
});

t.test('placeholders in the expected output', async (t) => {
  t.match('ds_01AB\n', expectation('ds_…\n'));
  t.notMatch('job_01AB\n', expectation('ds_…\n'));
  t.notMatch('ds_01\nmore\n', expectation('ds_…\n'), 'within a line');
  t.match('a\nb\nc\nd\n', expectation('a\n…\nd\n'));
  t.notMatch('a\nd\n', expectation('a\n…\nd\n'), 'at least a line');
  t.match('a    b\n', expectation('a b\n'), 'columns may be wider');
  t.notMatch('axb\n', expectation('a.b\n'));
});

t.test('one shell runs all blocks, up to the first failure', async (t) => {
  const options = { cwd: tmpdir(), env: process.env };
  t.strictSame(await runBlocks(blocksOf(PAGE), 'echo unseen', options), [
    { output: '', code: 0 },
    { output: '1\nsecond\n', code: 0 },
  ]);
  const failing = ['echo before; false\necho not reached\n', 'echo nor this\n'].map((commands) => ({
    line: 1,
    commands,
    expected: null,
  }));
  t.strictSame(await runBlocks(failing, '', options), [{ output: 'before\n', code: 1 }]);
});
