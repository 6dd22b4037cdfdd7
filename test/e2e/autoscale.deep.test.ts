/** From no agent to as many as the work needs and back to none, with real processes, without affecting any job. */
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { collect, type Zerofleet } from '../../clients/typescript/index.js';
import type { Job, JobSpec } from '../../contracts/index.js';
import { programsOf, startAutoscaledStack } from '../support/autoscaled-stack.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack, type TestStack } from '../support/stack.js';

const POLL_MS = 100;
const SLOTS = 2;
const MAX_AGENTS = 3;

/** Jobs of different sizes: the last ones do not fit on one agent. */
const SIZES = [
  { min: 1, max: 1, steps: 30 },
  { min: 1, max: 2, steps: 20 },
  { min: 2, max: 2, steps: 20 },
  { min: 1, max: 3, steps: 40 },
  { min: 3, max: 3, steps: 20 },
  { min: 5, max: 5, steps: 20 },
];

function specOf(dataset: string, { min, max, steps }: (typeof SIZES)[number]): JobSpec {
  const spec = smallJob({ name: `${min} to ${max} ranks`, dataset, steps, ranks: max });
  return { ...spec, resources: { ranks: { min, max, preferred: max } } };
}

const agentsOf = (stack: TestStack) => programsOf(stack, 'worker/agent/main.js');

/** Polls the workers until the jobs have ended. Returns the maximum number of workers, and the ended jobs. */
async function watchWork(client: Zerofleet, ids: readonly string[]): Promise<{ most: number; jobs: Job[] }> {
  let most = 0;
  for (;;) {
    most = Math.max(most, (await client.workers()).length);
    const jobs = await Promise.all(ids.map((id) => client.jobs.get(id)));
    if (jobs.every(({ state }) => ['succeeded', 'failed', 'cancelled'].includes(state)))
      return { most, jobs };
    await sleep(POLL_MS);
  }
}

async function untilNoAgents(stack: TestStack): Promise<void> {
  while (agentsOf(stack).length > 0) await sleep(POLL_MS);
}

/** Checks for uninterrupted training: one attempt per job, nothing lost, preempted or released. */
async function checkUndisturbed(t: Test, client: Zerofleet, job: Job): Promise<void> {
  t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
  const events = await collect(client.jobs.events(job.id));
  const types = events.map(({ type }) => type);
  t.equal(types.filter((type) => type === 'attempt.started').length, 1, `${job.name}: one attempt`);
  for (const type of ['node.lost', 'rank.lost', 'checkpoint.skipped', 'attempt.retry'])
    t.notOk(types.includes(type), `${job.name}: no ${type}`);
  const back = events.filter(({ type, data }) => type === 'job.state' && data?.to === 'queued');
  t.same(back, [], `${job.name}: it never returned to the queue`);
}

t.test('agents start and stop with the work', async (t) => {
  const stack = await startAutoscaledStack(t, { slots: SLOTS, max: MAX_AGENTS });
  const { client } = stack;
  const dataset = (await client.datasets.create('openapi', sampleText())).id;
  t.same(await client.workers(), []);
  t.same(agentsOf(stack), [], 'no agent runs');

  const ids: string[] = [];
  for (const size of SIZES) ids.push((await client.jobs.create(specOf(dataset, size))).id);
  const { most, jobs } = await watchWork(client, ids);
  for (const job of jobs) await checkUndisturbed(t, client, job);
  t.equal(most, MAX_AGENTS, 'as many agents as needed, within the limit');
  const worlds = await Promise.all(ids.map((id) => collect(client.jobs.events(id))));
  const last = worlds.at(-1)?.find(({ type }) => type === 'training.started')?.data?.world_size;
  t.ok(Number(last) >= 5, `the largest trained on ${last} ranks, over all agents`);

  await untilNoAgents(stack);
  t.same(await client.workers(), []);
  const again = await client.jobs.create(specOf(dataset, { min: 1, max: 1, steps: 10 }));
  const second = await watchWork(client, [again.id]);
  t.match(second, { most: 1, jobs: [{ state: 'succeeded' }] }, 'and again from nothing');
  await untilNoAgents(stack);
  t.equal(await stack.stop(), 0, 'everything ends in order');
});

t.test('running jobs continue after a restart of the stack', async (t) => {
  const pools = [{ pool: 'default', types: [{ name: 'local', slots: SLOTS, max: 1 }] }];
  const first = await startStack(t, {
    args: ['--autoscale'],
    env: {
      ZEROFLEET_AUTOSCALE_POOLS: JSON.stringify(pools),
      ZEROFLEET_AUTOSCALE_INTERVAL_SECONDS: '1',
      ZEROFLEET_THREADS_PER_RANK: '1',
    },
  });
  const dataset = (await first.client.datasets.create('openapi', sampleText())).id;
  const size = { min: 1, max: 1, steps: 5_000 };
  const { id } = await first.client.jobs.create(specOf(dataset, size));
  await first.client.jobs.until(id, ({ progress }) => progress.step >= 5, { interval_ms: POLL_MS });
  t.equal(await first.stop(), 0);
  t.same(agentsOf(first), []);
  const second = await startStack(t, { args: ['--api-only'], data_dir: first.data_dir });
  const job = await second.client.jobs.get(id);
  t.match(job, { state: 'queued', reason: 'worker_draining' });
  t.ok((job.latest_checkpoint?.step ?? 0) >= 5, 'it was saved');
  await second.client.jobs.cancel(id);
});
