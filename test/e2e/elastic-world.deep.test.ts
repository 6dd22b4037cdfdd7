/** One job, training with the native core, whose ranks move between worker agents while it runs. */
import t, { type Test } from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { Job, JobSpec } from '../../contracts/index.js';
import { Cluster, type TestAgent } from '../support/cluster.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { sampleText } from '../support/stack.js';
import { checkEqual, digestsByStep } from '../support/step-digests.js';

const STEPS = 60;
const STEPS_BETWEEN = 3;
const never = () => false;
const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

t.test('4 → 2 → 3 ranks over two agents', async (t) => {
  const cluster = await Cluster.start(t);
  const { client } = cluster;
  const agents = await Promise.all([cluster.agent({ slots: 2 }), cluster.agent({ slots: 2 })]);
  const dataset = (await client.datasets.create('openapi', sampleText())).id;
  const document = (name: string, ranks: number): JobSpec =>
    largerSteps(smallJob({ name, dataset, steps: STEPS, ranks, every_steps: 1000 }));
  const reference = await client.jobs.create(document('undisturbed', 1));
  const digest = (await client.jobs.until(reference.id, never)).export?.state_digest;
  t.match(digest, /^[0-9a-f]{32}$/);

  /** A job that trains on four ranks, two per agent. */
  async function begin(name: string): Promise<string> {
    const { id } = await client.jobs.create(document(name, 4));
    await cluster.untilRanks(id, 4);
    await cluster.untilMoreSteps(id, STEPS_BETWEEN);
    return id;
  }

  async function untilTrainedOn(id: string, ranks: number): Promise<void> {
    await cluster.untilRanks(id, ranks);
    await cluster.untilMoreSteps(id, STEPS_BETWEEN);
  }

  /** Checks for equal bits, no lost or repeated step, no orphaned rank. */
  async function expectUndisturbed(t: Test, id: string): Promise<Job> {
    const job = await client.jobs.until(id, never);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    t.equal(job.export?.state_digest, digest);
    t.strictSame(
      (await collect(client.jobs.metrics(id))).map(({ step }) => step),
      upTo(STEPS),
    );
    t.equal(job.lost_work_seconds, 0);
    t.strictSame(cluster.ranks(), []);
    return job;
  }

  await t.test('through resize', async (t) => {
    const id = await begin('resized');
    await client.jobs.resize(id, 2);
    await untilTrainedOn(id, 2);
    await client.jobs.resize(id, 3);
    await untilTrainedOn(id, 3);
    const { epoch } = await expectUndisturbed(t, id);
    t.equal(epoch, 1, 'one attempt');
    t.strictSame(await slotsOf(cluster, id), [[2, 2], [2], [2, 1]]);
    t.match(
      (await cluster.events(id, 'ranks.changed')).map(({ data }) => data),
      [
        { from: 4, to: 2 },
        { from: 2, to: 3 },
      ],
    );
  });

  await t.test('an agent leaves, another one joins, and the leader leaves', async (t) => {
    const id = await begin('moved');
    const [leader, member] = await inOrder(cluster, id, agents);
    t.equal(await member.stop(), 0);
    await untilTrainedOn(id, 2);
    agents.push(await cluster.agent({ slots: 2 }));
    await client.jobs.resize(id, 3);
    await untilTrainedOn(id, 3);
    t.equal(await leader.stop(), 0);
    await expectUndisturbed(t, id);
    t.strictSame(await slotsOf(cluster, id), [[2, 2], [2], [2, 1], [2]]);
  });

  await Promise.all(agents.map((agent) => agent.stop()));
  t.strictSame(cluster.processes(), [], 'nothing is left of the agents');
});

/** Ranks per worker in each generation that trained; the leader comes first. */
async function slotsOf(cluster: Cluster, id: string): Promise<number[][]> {
  return (await cluster.placements(id)).map((placements) => placements.map(({ slots }) => slots));
}

/** The agents of a job that trains on two. */
async function inOrder(
  cluster: Cluster,
  id: string,
  agents: readonly TestAgent[],
): Promise<[TestAgent, TestAgent]> {
  const placements = (await cluster.placements(id)).at(-1) ?? [];
  const [leader, member] = placements.map(({ worker_id }) =>
    agents.find(({ worker }) => worker.id === worker_id),
  );
  if (!leader || !member) throw new Error('the job does not train on two of the agents');
  return [leader, member];
}

t.test(
  '1, 2, 3 and 4 ranks with 2 threads each: the same state after each step as on one thread',
  async (t) => {
    checkEqual(t, [...(await digestsByStep(t, 1, [1])), ...(await digestsByStep(t, 2, [1, 2, 3, 4]))]);
  },
);
