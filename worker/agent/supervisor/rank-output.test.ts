import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { BURST, LineBudget } from './line-budget.js';
import { LineSplitter } from './line-splitter.js';
import { type LogLine, MAX_MESSAGE } from './log-line.js';
import { RankOutput } from './rank-output.js';

async function written(chunks: readonly (string | Buffer)[], budget?: LineBudget) {
  const lines: LogLine[] = [];
  const output = new RankOutput((line) => lines.push(line), budget);
  const source = new PassThrough();
  output.read(source, 'stdout');
  for (const chunk of chunks) source.write(chunk);
  source.end();
  await new Promise((resolve) => source.once('end', resolve));
  await turn();
  output.close();
  return { lines, tail: output.tail };
}
const messages = ({ lines }: { lines: LogLine[] }) => lines.map(({ message }) => message);

t.test('lines do not depend on the chunks', async (t) => {
  const text = Buffer.from('first\nzweite ü 😀\r\n\n10 %\r20 %\rlast');
  const expected = ['first', 'zweite ü 😀', '10 %', '20 %', 'last'];
  t.same(messages(await written([text])), expected);
  t.same(messages(await written([...text].map((byte) => Buffer.of(byte)))), expected, 'byte by byte');
});

t.test('invalid UTF-8 is replaced', async (t) => {
  t.same(messages(await written([Buffer.from([0x61, 0xff, 0xc3, 0x0a, 0xf0, 0x9f])])), [
    'a\ufffd\ufffd',
    '\ufffd',
  ]);
});

t.test('a long line is cut, without memory for the rest', async (t) => {
  const pieces = Array.from({ length: 200 }, () => 'x'.repeat(100_000));
  const { lines } = await written([...pieces, '\nnext\n']);
  t.match(lines, [
    { message: 'x'.repeat(MAX_MESSAGE), truncated: true },
    { message: 'next', truncated: false },
  ]);
  t.match((await written(['y'.repeat(MAX_MESSAGE)])).lines, [{ truncated: false }]);
  const emoji = (await written([`${'x'.repeat(MAX_MESSAGE - 1)}😀`])).lines[0];
  t.match(
    emoji,
    { message: 'x'.repeat(MAX_MESSAGE - 1), truncated: true },
    'not in the middle of a character',
  );
  let held = 0;
  const splitter = new LineSplitter((line) => {
    held = line.length;
  });
  for (const piece of pieces) splitter.push(Buffer.from(piece));
  splitter.end();
  t.ok(held < 10_000);
});

t.test('a line can neither forge others nor control a terminal', async (t) => {
  const { lines } = await written([
    '\u001b[2J\u001b]0;pwned\u0007ok\u0000\u0085{"kind":"log","rank":7}\u2028x\n',
  ]);
  t.same(
    lines.map(({ message }) => message),
    ['ok\ufffd\ufffd{"kind":"log","rank":7}\ufffdx'],
  );
});

t.test('secrets of the environment and text that looks like a secret are redacted', async (t) => {
  process.env.ZF_TEST_OUTPUT_SECRET = 'correct-horse';
  t.teardown(() => delete process.env.ZF_TEST_OUTPUT_SECRET);
  const { lines, tail } = await written([
    'it is correct-horse\n',
    'it is correct-\u001b[0mhorse\n',
    'Authorization: Bearer abcdefgh\n',
    `${'x'.repeat(MAX_MESSAGE - 5)}correct-horse\n`,
  ]);
  t.notMatch(JSON.stringify([lines, tail]), /correct-|abcdefgh|corr/);
  t.equal(lines[0]?.message, 'it is [redacted]');
});

t.test('excess lines are dropped and counted, and the last ones are kept', async (t) => {
  let now = 0;
  const flood = Array.from({ length: 5_000 }, (_, i) => `line ${i}\n`).join('');
  const { lines, tail } = await written([flood], new LineBudget(() => now));
  t.equal(lines.length, BURST + 1);
  t.match(lines.at(-1), {
    stream: 'worker',
    dropped: 5_000 - BURST,
    message: /^4,800 lines dropped: .* 20 lines a second$/,
  });
  t.same(
    tail,
    Array.from({ length: 20 }, (_, i) => `line ${4_980 + i}`),
  );

  const budget = new LineBudget(() => now);
  let passed = 0;
  for (; now < 60_000; now += 1) if (budget.take()) passed += 1;
  t.ok(passed > 1_380 && passed <= BURST + 60 * 20, `${passed} of 60,000 in a minute`);
});

t.test('dropped lines are reported while the rank is silent', async (t) => {
  const lines: LogLine[] = [];
  const output = new RankOutput((line) => lines.push(line), new LineBudget(() => 0));
  const source = new PassThrough();
  output.read(source, 'stderr');
  source.write('x\n'.repeat(BURST + 3));
  while (lines.length <= BURST) await new Promise((resolve) => setTimeout(resolve, 10));
  t.match(lines.at(-1), { dropped: 3 });
  output.close();
  t.equal(lines.length, BURST + 1, 'once');
});
