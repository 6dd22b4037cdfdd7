/** The Python examples of sessions, and what the log of one proves. */
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t from 'tap';
import { callKey } from '../../formats/checkpoint/layout.js';
import { projectRoot } from '../../platform/process/root.js';
import { ensureInstalled } from '../../platform/testing/programs.js';
import { commandLine } from '../cli/command-line.js';
import { killRank, rankProcesses } from '../support/processes.js';
import { pythonWith } from '../support/python.js';
import { startStack, type TestStack } from '../support/stack.js';

const lacking = await ensureInstalled(
  () => ('missing' in pythonWith('httpx') ? ['httpx of python3'] : []),
  ['python3', 'python3-httpx'],
);

const FORM_STEPS = 30;
const STEPS = 8;
/** The first pass with advantages: after the supervised steps of two calls each, and a sample. */
const FIRST_PASS = 2 * FORM_STEPS + 2;

/** Runs an example. Returns its lines behind the id of its session. */
async function runExample(
  { client }: TestStack,
  args: readonly [example: string, ...options: string[]],
  onLine: (line: string, sessionId: string) => unknown = () => undefined,
): Promise<{ id: string; lines: string[] }> {
  const found = pythonWith('httpx');
  if ('missing' in found) throw new Error(found.missing);
  const [example, ...options] = args;
  const folder = join(projectRoot(), 'clients', 'python');
  const child = spawn(found.python, ['-B', join(folder, 'examples', example), ...options], {
    env: {
      ...process.env,
      PYTHONPATH: folder,
      ZEROFLEET_URL: client.options.baseUrl,
      ZEROFLEET_API_KEY: client.options.apiKey,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    await onLine(line, lines[0] ?? '');
  }
  const code = await ended;
  if (code !== 0) throw new Error(`${example} ended with ${code}:\n${lines.join('\n')}`);
  const [id = '', ...others] = lines;
  return { id, lines: others };
}

/** Multiplies the first advantage that is not 0. */
function withOtherAdvantage(call: string): string {
  return call.replace(
    /("advantages":\[(?:0,)*)(-?(?!0[,\]])[\d.e-]+)/,
    (_, before, advantage) => `${before}${2 * advantage}`,
  );
}

t.test('the examples', { skip: lacking ?? false, timeout: 240_000 }, async (t) => {
  const stack = await startStack(t, { env: { ZEROFLEET_SLOTS: '3', ZEROFLEET_THREADS_PER_RANK: '1' } });
  const { client } = stack;
  const { baseUrl, apiKey } = client.options;
  const zerofleet = commandLine({ ZEROFLEET_URL: baseUrl, ZEROFLEET_API_KEY: apiKey });
  const grpo = (ranks: number, onLine?: (line: string, id: string) => unknown) => {
    const counts = ['--steps', `${STEPS}`, '--form-steps', `${FORM_STEPS}`, '--ranks', `${ranks}`];
    return runExample(stack, ['grpo.py', ...counts], onLine);
  };
  const first = await grpo(1);

  await t.test(
    'GRPO: the same rewards and digests on other ranks, with a killed rank and a resize',
    async (t) => {
      t.equal(first.lines.length, STEPS + 1);
      for (const line of first.lines.slice(0, STEPS))
        t.match(line, /^step \d: reward 0\.\d{3}, entropy \d\.\d{3}, [0-9a-f]{32}$/);
      const disturbed = await grpo(2, async (line, id) => {
        if (line.startsWith('step 2:')) {
          t.equal(rankProcesses(stack.pid).length, 2);
          killRank(stack.pid, 1);
        }
        if (!line.startsWith('step 5:')) return;
        await client.jobs.resize(id, 3);
        const resized = await client.jobs.until(id, ({ world_size }) => world_size === 3, {
          interval_ms: 20,
        });
        t.match(resized, { state: 'running', world_size: 3 });
      });
      t.strictSame(disturbed.lines, first.lines);
      t.strictSame((await grpo(3)).lines, first.lines);
    },
  );

  await t.test('the log gives every result again, and a changed advantage is found', async (t) => {
    const same = await zerofleet(['replay', first.id, '--ranks', '2']);
    t.match(same, {
      code: 0,
      out: `all ${FIRST_PASS - 2 + 3 * STEPS + 2} results are the same, bit for bit`,
    });
    const path = join(stack.data_dir, 'objects', callKey(first.id, FIRST_PASS));
    const call = await readFile(path, 'utf8');
    const changed = withOtherAdvantage(call);
    t.not(changed, call);
    await writeFile(path, changed);
    const found = await zerofleet(['replay', first.id]);
    t.match(found, {
      code: 1,
      out: new RegExp(`^call ${FIRST_PASS} \\(forward_backward\\) differs in loss:`),
    });
  });

  await t.test('supervised training and DPO learn', async (t) => {
    const rewardOf = ({ lines }: { lines: string[] }) =>
      Number(/^reward (.*)$/.exec(lines.at(-1) ?? '')?.[1]);
    const supervised = await runExample(stack, ['supervised.py', '--steps', '10']);
    t.match(supervised.lines[0], /^step 1: loss 5\.\d{3}$/);
    t.ok(rewardOf(supervised) >= 0);
    const dpo = await runExample(stack, ['dpo.py', '--form-steps', '10', '--steps', '30']);
    t.equal(dpo.lines[0], 'step 1: loss 0.693, accuracy 0.000');
    t.match(dpo.lines.at(-2), /^step 30: loss 0\.[0-6]/);
  });
});
