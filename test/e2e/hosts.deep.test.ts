/** A world over machines that share only a network and the object store, and its behaviour when a cable is cut. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { testProgram } from '../../platform/testing/test-program.js';
import { Cluster, type TestAgent } from '../support/cluster.js';
import {
  BRIDGE_ADDRESS,
  OWN_NETWORK,
  startHost,
  startNetwork,
  type TestHost,
  whyNoNetworks,
} from '../support/hosts.js';
import { rankProcesses } from '../support/processes.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { sampleText } from '../support/stack.js';

const INSIDE = 'ZF_TEST_OWN_NETWORK';
const STEPS = 24;
/** An agent with short intervals, so that timeouts end within the test. */
const QUICK_AGENT = testProgram('test/chaos/agent-main');
const never = () => false;

interface Machine {
  host: TestHost;
  agent: TestAgent;
}

if (process.env[INSIDE] === undefined) await startInside();
else await t.test('hosts with two slots each', inside);

/** Runs this file again in its own network. */
async function startInside(): Promise<void> {
  const skip = (await whyNoNetworks()) ?? false;
  const [program = '', ...args] = [...OWN_NETWORK, process.execPath, fileURLToPath(import.meta.url)];
  await t.test('a world over hosts with their own networks', { skip }, (t) =>
    t.spawn(program, args, { env: { ...process.env, [INSIDE]: '1' } }, 'inside'),
  );
}

async function inside(t: Test): Promise<void> {
  await startNetwork();
  const cluster = await Cluster.start(t);
  const redis = await cluster.listen(BRIDGE_ADDRESS);
  // One host is given its address, the other one derives it from the route to Redis.
  const machines = await Promise.all([machine(1, true), machine(2, false)]);
  const { client } = cluster;
  const dataset = (await client.datasets.create('openapi', sampleText())).id;
  const document = (name: string, ranks: number) =>
    largerSteps(smallJob({ name, dataset, steps: STEPS, ranks, every_steps: 5 }));
  const reference = await client.jobs.create(document('undisturbed', 1));
  const digest = (await client.jobs.until(reference.id, never)).export?.state_digest ?? 'none';

  async function machine(number: number, hasAddress: boolean): Promise<Machine> {
    const host = await startHost(t, number);
    const env = { ZEROFLEET_REDIS_URL: redis, ...(hasAddress && { ZEROFLEET_ADDRESS: host.address }) };
    const agent = await cluster.agent({ slots: 2, env, launcher: host.launcher, program: QUICK_AGENT });
    t.equal(agent.worker.address, host.address);
    return { host, agent };
  }

  /** A job that has saved a checkpoint on four ranks, and the machines in the order of its placements. */
  async function begin(name: string): Promise<{ id: string; leader: Machine; member: Machine }> {
    const { id } = await client.jobs.create(document(name, 4));
    await cluster.untilRanks(id, 4);
    await client.jobs.until(id, (job) => job.latest_checkpoint !== null);
    const placements = (await cluster.placements(id)).at(-1) ?? [];
    const [leader, member] = placements.map((placement) =>
      machines.find(({ agent }) => agent.worker.id === placement.worker_id),
    );
    if (!leader || !member) throw new Error('the job does not train on both machines');
    return { id, leader, member };
  }

  async function expectSame(t: Test, id: string): Promise<void> {
    const job = await client.jobs.until(id, never);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    t.equal(job.export?.state_digest, digest);
  }

  await t.test('ranks of two hosts train to the same digest', async (t) => {
    const { id } = await begin('whole');
    await expectSame(t, id);
    t.equal((await cluster.placements(id)).length, 1);
  });

  for (const who of ['member', 'leader'] as const) {
    await t.test(`the cable of the ${who} is cut`, async (t) => {
      const { id, ...roles } = await begin(`cut ${who}`);
      const { host, agent } = roles[who];
      await host.cut();
      await untilNoRanks(agent.pid);
      t.pass('its ranks have exited while it is unreachable');
      await expectSame(t, id);
      t.strictSame(
        (await cluster.placements(id)).at(-1)?.map(({ slots }) => slots),
        [2],
        'on the remaining machine',
      );
      const lost = await cluster.events(id, 'node.lost');
      if (who === 'member') t.match(lost, [{ data: { code: 'node_lost' } }]);
      await host.repair();
      await cluster.untilAnnounced(agent.pid);
    });
  }

  const codes = await Promise.all(machines.map(({ agent }) => agent.stop()));
  t.strictSame(codes, [0, 0]);
  t.strictSame(cluster.processes(), [], 'nothing is left of the agents');
}

async function untilNoRanks(agent: number): Promise<void> {
  while (rankProcesses(agent).length > 0) await sleep(50);
}
