import t from 'tap';
import { smallJob } from './specs.js';
import { sampleText, startStack } from './stack.js';

const STEPS = 20;
const RANKS = [1, 2, 3, 4];

/** The state digest after each step of a job that checkpoints every step, for each number of ranks. */
async function digestsPerStep(t: Parameters<typeof startStack>[0], threads: number): Promise<string[][]> {
  const stack = await startStack(t, { env: { ZEROFLEET_THREADS_PER_RANK: String(threads) } });
  const dataset = (await stack.client.createDataset('openapi', sampleText())).id;
  const runs: string[][] = [];
  for (const ranks of RANKS) {
    const name = `${ranks} ranks, ${threads} threads`;
    const spec = smallJob({ name, dataset, steps: STEPS, ranks, every_steps: 1, keep_last: STEPS });
    const { id } = await stack.client.createJob(spec);
    const job = await stack.client.waitForJob(id, () => false);
    t.equal(job.state, 'succeeded', `${name}: ${JSON.stringify(job.failure)}`);
    const { data } = await stack.client.request<{
      data: { step: number; state_digest: string; world_size: number }[];
    }>('GET', `/v1/jobs/${id}/checkpoints?limit=100`);
    const ordered = data.toSorted((a, b) => a.step - b.step);
    t.same(
      ordered.map(({ step }) => step),
      Array.from({ length: STEPS }, (_, index) => index + 1),
      `${name}: a checkpoint of every step`,
    );
    t.ok(
      ordered.every(({ world_size }) => world_size === ranks),
      `${name}: really on ${ranks} ranks`,
    );
    runs.push(ordered.map(({ state_digest }) => state_digest));
  }
  await stack.stop();
  return runs;
}

t.test('1, 2, 3 and 4 ranks, each with 1 and 2 threads: the same state after each of 20 steps', async (t) => {
  const runs = [...(await digestsPerStep(t, 1)), ...(await digestsPerStep(t, 2))];
  const [first, ...others] = runs;
  t.equal(new Set(first).size, STEPS, 'every step changes the state');
  for (const run of others) t.strictSame(run, first);
});
