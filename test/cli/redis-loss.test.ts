/**
 * Commands that follow a job across a loss of Redis: each line is shown once, those before the loss and those after it.
 */
import t, { type Test } from 'tap';
import type { TestStack } from '../../api/testing/stack.js';
import { claimAndTrain } from '../../api/testing/training.js';
import { until } from '../../platform/testing/waiting.js';
import { start } from './command-line.js';

const linesOf = (lines: number) => Array.from({ length: lines }, (_, i) => `line ${i + 1} of ${lines}`);
const BEFORE = linesOf(3);
const AFTER = linesOf(30);

/** Number of reads of a job's record. */
async function jobReads({ app }: TestStack): Promise<number> {
  const { text } = await app.services.metrics.scrape([]);
  return Number(/requests_total\{operation="getJob",status="200"\} (\d+)/.exec(text)?.[1] ?? 0);
}

/**
 * Follows a job with a command until it has shown `last`, clears Redis, and lets the job end. @returns the command's
 * output
 */
async function followed(t: Test, command: string[], last: RegExp): Promise<string[]> {
  const [name = '', ...options] = command;
  const { stack, zerofleet } = await start(t);
  const { store } = stack;
  const { id, created_at } = await stack.createJob();
  const train = async (steps: number, texts: string[]) => {
    const epoch = await claimAndTrain(store, id, { steps });
    const line = { rank: 0, at: created_at, stream: 'stdout', truncated: false, dropped: 0 } as const;
    const lines = texts.map((message) => ({ ...line, message }));
    await store.appendLogs(id, epoch, lines);
    return epoch;
  };
  // Without metrics `watch` reads the job once at the start and once per event.
  await train(name === 'watch' ? 0 : 12, BEFORE);
  const reads = name === 'watch' ? 1 + (await store.readStream(id, null, 100, ['event'])).length : 0;
  let shown = false;
  const running = zerofleet([name, id, ...options], {
    onOut: (out) => {
      shown = last.test(out);
    },
  });
  await until(async () => shown && stack.followers() === 1 && (await jobReads(stack)) === reads);
  await stack.loseRedis();
  // From below the position that it has reached to beyond it.
  const epoch = await train(1, AFTER);
  await store.finishJob(id, epoch, 'succeeded', { reason: 'completed' });
  const { code, out, err } = await running;
  t.match({ code, err }, { code: 0, err: '' });
  return out.split('\n');
}

t.test('logs -f', async (t) => {
  for (const [options, before] of [
    [[], BEFORE],
    [['-n', '2'], BEFORE.slice(1)],
    [['-r', '0'], BEFORE],
  ] as const) {
    const shown = await followed(t, ['logs', '-f', ...options], /line 3 of 3/);
    t.strictSame(
      shown.map((text) => text.slice(text.indexOf('line'))),
      [...before, ...AFTER],
      options.join(' '),
    );
  }
});

t.test('events -f', async (t) => {
  const shown = await followed(t, ['events', '-f', '--json'], /checkpoint\.committed/);
  const entries = shown.map((text) => JSON.parse(text) as { seq: number; type: string });
  const types = entries.map(({ type }) => type);
  t.equal(types[0], 'job.created');
  const at = types.indexOf('job.recovered');
  t.equal(entries[at]?.seq, 1);
  for (const part of [types.slice(0, at), types.slice(at)])
    t.equal(part.filter((type) => type === 'checkpoint.committed').length, 1);
  for (const part of [entries.slice(0, at), entries.slice(at)]) {
    const seqs = part.map(({ seq }) => seq);
    t.strictSame(
      seqs,
      [...new Set(seqs)].sort((a, b) => a - b),
    );
  }
  t.match(entries.at(-1), { type: 'job.state', data: { to: 'succeeded' } });
});

t.test('watch', async (t) => {
  const shown = await followed(t, ['watch'], /running/);
  t.match(shown.join('\n'), /succeeded {2}step 1\/.*state +succeeded/s);
});
