/** Training on allocations of a real Slurm that come, and go in every way. */
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { Job, JobSpec } from '../../contracts/index.js';
import { whyNoSlurm } from '../../platform/testing/slurm.js';
import { SlurmStack } from '../support/slurm-stack.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { sampleText } from '../support/stack.js';

const NODES = 4;
const STEPS = 600;
/** More than a job can take in these tests. */
const ENDLESS = 1_000_000;
const POLL_MS = 200;
const never = () => false;
const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

const skip = (await whyNoSlurm()) ?? false;

/** One agent has a node of its own. */
const allocation = { partition: 'main', arguments: ['--exclusive'] };
const POOLS = [
  {
    pool: 'default',
    idle_seconds: 2,
    move_seconds: null,
    types: [{ name: 'node', slots: 1, max: NODES, slurm: allocation }],
  },
  {
    pool: 'short',
    idle_seconds: 2,
    types: [
      { name: 'short', slots: 1, max: 1, slurm: { ...allocation, time_minutes: 1, drain_seconds: 15 } },
    ],
  },
];

/** Slurm itself takes five minutes: it ends allocations by the minute. */
t.setTimeout(1_800_000);

t.test('on a real Slurm', { skip }, async (t) => {
  const stack = await SlurmStack.start(t, { nodes: NODES, grace_seconds: 20, pools: POOLS });
  const { cluster, slurm } = stack;
  const { client } = cluster;
  const dataset = (await client.datasets.create('openapi', sampleText())).id;
  const specOf = (name: string, ranks: number, everySteps = 100): JobSpec => ({
    ...largerSteps(smallJob({ name, dataset, steps: STEPS, ranks, every_steps: everySteps })),
    resources: { ranks: { min: ranks, max: ranks, preferred: ranks } },
  });
  const untilEmpty = async () => {
    while ((await stack.allocations('PENDING,RUNNING,COMPLETING')).length > 0) await sleep(POLL_MS);
  };
  let digest: string | undefined;

  const stepsOf = async (id: string) =>
    (await collect(client.jobs.metrics(id))).map(({ step }) => step).sort((a, b) => a - b);

  /** Reasons for which a job went back to its queue. */
  const backsOf = async (id: string) =>
    (await cluster.events(id, 'job.state'))
      .filter(({ data }) => data.to === 'queued')
      .map(({ data }) => data.reason);

  async function expectEqual(t: Test, id: string): Promise<Job> {
    const job = await client.jobs.until(id, never);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    t.equal(job.export?.state_digest, digest, 'the same bits');
    t.strictSame([...new Set(await stepsOf(id))], upTo(STEPS), 'no step is missing');
    return job;
  }

  /** A job that trains until it is paused: what is to interrupt it may take its time. */
  function endless(name: string, ranks: number, pool: string, everySteps = 100_000): JobSpec {
    const spec = specOf(name, ranks, everySteps);
    const { train, resources } = spec;
    return { ...spec, train: { ...train, steps: ENDLESS }, resources: { ...resources, pool } };
  }

  const untilQueued = (id: string) =>
    client.jobs.until(id, ({ state }) => state === 'queued', { interval_ms: POLL_MS });

  /**
   * Pauses an endless job that was handed over at checkpoints: nothing was trained twice, and an
   * undisturbed job has the same bits at its last step. Ends both.
   */
  async function expectHandedOver(t: Test, id: string): Promise<void> {
    await client.jobs.pause(id);
    const job = await client.jobs.until(id, ({ state }) => state === 'paused', { interval_ms: POLL_MS });
    t.strictSame(await stepsOf(id), upTo(job.progress.step), 'each step once');
    t.equal(job.lost_work_seconds, 0);
    t.same(await cluster.events(id, 'checkpoint.skipped'), []);
    t.same(await cluster.events(id, 'node.lost'), []);
    // A worker may be gone when its ranks are to be placed.
    const backs = (await backsOf(id)).filter((reason) => reason !== 'waiting_for_capacity');
    t.same([...new Set(backs)], ['preempted']);
    const { step = 0, state_digest } = job.latest_checkpoint ?? {};
    const reference = await client.jobs.create(endless('undisturbed', 1, 'default', step));
    const same = await client.jobs.until(reference.id, (job) => job.latest_checkpoint?.step === step);
    t.equal(state_digest, same.latest_checkpoint?.state_digest, `the same bits at step ${step}`);
    await client.jobs.cancel(reference.id);
    await client.jobs.cancel(id);
  }

  await t.test('from no node to four and back', async (t) => {
    t.same(await stack.allocations('all'), []);
    const reference = await client.jobs.create(specOf('undisturbed', 1));
    const wide = await client.jobs.create(specOf('wide', 3));
    await cluster.untilRanks(wide.id, 3);
    t.equal((await stack.allocations('RUNNING')).length, NODES);
    digest = (await client.jobs.until(reference.id, never)).export?.state_digest;
    t.match(digest, /^[0-9a-f]{32}$/);
    await expectEqual(t, wide.id);
    await untilEmpty();
    t.same(await client.workers(), []);
  });

  await t.test('an autoscaler that replaces another one finds its allocations', async (t) => {
    const { id } = await client.jobs.create(specOf('kept', 2));
    await cluster.untilRanks(id, 2);
    const before = await stack.allocations('RUNNING');
    await stack.autoscaler.kill();
    stack.autoscaler.start();
    await expectEqual(t, id);
    await untilEmpty();
    t.same(before.length, 2);
    t.same(
      (await stack.allocations('all')).filter((job) => job > (before.at(-1) ?? '')),
      [],
    );
  });

  await t.test('a cancelled allocation, and preempted ones', async (t) => {
    const { id } = await client.jobs.create(endless('preempted', 2, 'default'));
    await cluster.untilRanks(id, 2);
    await cluster.untilMoreSteps(id, 3);
    // All processes of the allocation get SIGTERM, ranks as well.
    const [first = ''] = await stack.allocations('RUNNING');
    await slurm.run('scancel', first);
    await untilQueued(id);
    await cluster.untilRanks(id, 2);
    await cluster.untilMoreSteps(id, 3);
    const urgent = ['--partition=urgent', `--nodes=${NODES}`, '--exclusive', '--output=/dev/null'];
    await slurm.run('sbatch', ...urgent, '--wrap=sleep 5');
    await untilQueued(id);
    await cluster.untilRanks(id, 2);
    await cluster.untilMoreSteps(id, 3);
    await expectHandedOver(t, id);
    await untilEmpty();
  });

  await t.test('a node that fails', async (t) => {
    const { id } = await client.jobs.create(specOf('node lost', 2));
    await cluster.untilRanks(id, 2);
    await cluster.untilMoreSteps(id, 30);
    const options = ['--noheader', '--states=RUNNING', '--format=%N'];
    const [node = ''] = (await slurm.run('squeue', ...options)).trim().split('\n');
    await slurm.killNode(node);
    await expectEqual(t, id);
    await slurm.startNode(node);
    await untilEmpty();
  });

  await t.test('a time limit in mid-training', async (t) => {
    const { id } = await client.jobs.create(endless('limited', 1, 'short'));
    await cluster.untilRanks(id, 1);
    const before = await stack.allocations('RUNNING');
    await untilQueued(id);
    await cluster.untilRanks(id, 1);
    await cluster.untilMoreSteps(id, 3);
    t.not(`${await stack.allocations('RUNNING')}`, `${before}`, 'in another allocation');
    await expectHandedOver(t, id);
    await untilEmpty();
  });
});
