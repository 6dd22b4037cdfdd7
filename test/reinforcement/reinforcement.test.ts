/** Reinforcement learning as an objective: with real ranks, over HTTP. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import type { Rollout } from '../../contracts/index.js';
import { rewardsKey } from '../../formats/checkpoint/layout.js';
import { commandLine } from '../cli/command-line.js';
import { rankProcesses } from '../support/processes.js';
import { digitsJob, uploadDigits } from '../support/prompts.js';
import { startStack, type TestStack } from '../support/stack.js';

const POLL = { interval_ms: 20 };
const STEPS = 30;
const SHOWN = [1, 2, STEPS / 2, STEPS];

async function rolloutsOf({ client }: TestStack, id: string): Promise<Rollout[]> {
  const rollouts: Rollout[] = [];
  for (const step of SHOWN) rollouts.push(await client.calls.rollout(id, step));
  return rollouts;
}

async function digestsOf({ client }: TestStack, id: string): Promise<(string | null)[]> {
  const digests: (string | null)[] = [];
  for await (const { type, state_digest } of client.calls.list(id, { limit: 100 }))
    if (type === 'optim_step') digests.unshift(state_digest);
  return digests;
}

t.test('the objective grpo', async (t) => {
  const stack = await startStack(t, { env: { ZEROFLEET_SLOTS: '3', ZEROFLEET_THREADS_PER_RANK: '1' } });
  const { client } = stack;
  const dataset = await uploadDigits(client);
  const jobOf = (name: string, ranks: number) => digitsJob({ name, dataset, steps: STEPS, ranks });
  const expected: { id: string; digests: (string | null)[]; rollouts: Rollout[] } = {
    id: '',
    digests: [],
    rollouts: [],
  };

  await t.test('one rank: rewards, metrics and digests', async (t) => {
    const { id } = await client.jobs.create(jobOf('one rank', 1));
    const job = await client.jobs.wait(id);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    t.match(job.progress, { step: STEPS, total_steps: STEPS });
    expected.id = id;
    expected.digests = await digestsOf(stack, id);
    expected.rollouts = await rolloutsOf(stack, id);
    t.equal(new Set(expected.digests).size, STEPS, 'every step changes the state');
    t.equal(job.export?.state_digest, expected.digests.at(-1));
    const [first] = expected.rollouts;
    t.match(first, { step: 1, call: 1 });
    t.same(
      first?.groups.map(({ samples }) => samples.length),
      Array(6).fill(6),
    );
    for await (const { step, reinforcement = {} } of client.jobs.metrics(id)) {
      const shown = expected.rollouts.find((rollout) => rollout.step === step);
      if (shown === undefined) continue;
      const samples = shown.groups.flatMap((group) => group.samples);
      const mean = samples.reduce((sum, { reward }) => sum + reward, 0) / samples.length;
      t.equal(reinforcement.reward, mean);
      t.equal(reinforcement['score/digit'], mean);
    }
    const call = { type: 'save_state' } as const;
    await t.rejects(client.calls.put(id, 1, call), { code: 'calls_read_only' });
  });

  await t.test('two and three ranks, a killed one, a resize and a pause change no bit', async (t) => {
    const { id } = await client.jobs.create(jobOf('disturbed', 2));
    await client.jobs.until(id, ({ progress }) => progress.step >= 1, POLL);
    process.kill(rankProcesses(stack.pid)[0]?.pid ?? Number.NaN, 'SIGKILL');
    await client.jobs.until(id, ({ progress }) => progress.step >= 2, POLL);
    await client.jobs.resize(id, 3);
    await client.jobs.until(id, ({ world_size }) => world_size === 3, POLL);
    await client.jobs.pause(id);
    await client.jobs.until(id, ({ state }) => state === 'paused', POLL);
    await client.jobs.resume(id);
    const job = await client.jobs.wait(id);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    t.same(await digestsOf(stack, id), expected.digests);
    t.same(await rolloutsOf(stack, id), expected.rollouts);
  });

  await t.test('a replay gives every result again, and a changed reward is named', async (t) => {
    const { id } = expected;
    const { baseUrl, apiKey } = client.options;
    const zerofleet = commandLine({ ZEROFLEET_URL: baseUrl, ZEROFLEET_API_KEY: apiKey });
    const same = await zerofleet(['replay', id, '--ranks', '2']);
    // A rollout has a sample, two passes and an update; then there is the finish.
    t.match(same, { code: 0, out: `all ${4 * STEPS + 1} results are the same, bit for bit` }, same.err);
    const path = join(stack.data_dir, 'objects', rewardsKey(id, 1));
    const rewards = await readFile(path, 'utf8');
    await writeFile(
      path,
      rewards.replace(/"reward":([01])/, (_, reward) => `"reward":${1 - Number(reward)}`),
    );
    const changed = await zerofleet(['replay', id]);
    t.match(changed, {
      code: 1,
      out: /^call 2 \(forward_backward\) differs in rows\[0\]\.advantages, which the recorded rewards give:/,
    });
  });
});
