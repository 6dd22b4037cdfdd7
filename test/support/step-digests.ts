/** State digests of one small job on several numbers of ranks. */
import type { Test } from 'tap';
import { collect } from '../../clients/typescript/index.js';
import { smallJob } from './specs.js';
import { sampleText, startStack } from './stack.js';

const STEPS = 20;

/** State digests by step, of the checkpoints that a job has kept. */
type Digests = Map<number, string>;

/**
 * Digests of a job that requests a checkpoint of every step, for each number of ranks. A step whose save would have to
 * wait for earlier ones has none; the last step always has one. (native/js/trainer.test.ts compares every step without
 * gaps.)
 */
export async function digestsByStep(t: Test, threads: number, worlds: readonly number[]): Promise<Digests[]> {
  const stack = await startStack(t, { env: { ZEROFLEET_THREADS_PER_RANK: String(threads) } });
  const dataset = (await stack.client.datasets.create('openapi', sampleText())).id;
  const runs: Digests[] = [];
  for (const ranks of worlds) {
    const name = `${ranks} ranks, ${threads} threads`;
    const spec = smallJob({ name, dataset, steps: STEPS, ranks, every_steps: 1, keep: { last: STEPS } });
    const { id } = await stack.client.jobs.create(spec);
    const job = await stack.client.jobs.until(id, () => false);
    t.equal(job.state, 'succeeded', `${name}: ${JSON.stringify(job.failure)}`);
    const data = await collect(stack.client.jobs.checkpoints(id));
    t.ok(
      data.every(({ world_size }) => world_size === ranks),
      `${name}: really on ${ranks} ranks`,
    );
    runs.push(new Map(data.map(({ step, state_digest }) => [step, state_digest])));
  }
  await stack.stop();
  return runs;
}

/** Checks that all runs have the same state after each step. */
export function checkEqual(t: Test, runs: readonly Digests[]): void {
  const known: Digests = new Map();
  for (const [index, run] of runs.entries()) {
    t.ok(run.has(STEPS), `run ${index} has a checkpoint of its last step`);
    for (const [step, digest] of run) {
      t.equal(digest, known.get(step) ?? digest, `run ${index}, step ${step}`);
      known.set(step, digest);
    }
  }
  t.equal(new Set(known.values()).size, known.size, 'every step changes the state');
}
