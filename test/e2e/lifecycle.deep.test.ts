/**
 * From the cloud's interruption notice to the end of the instance. Agents read a simulated metadata service, and an
 * autoscaler calls a simulated EC2 Auto Scaling. The job store, queue and object store are real. The ranks run without
 * the native core.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AutoScalingClient } from '@aws-sdk/client-auto-scaling';
import t, { type Test } from 'tap';
import { Autoscaler } from '../../autoscaler/autoscaler.js';
import { AwsCapacity } from '../../autoscaler/aws/aws-capacity.js';
import { Groups } from '../../autoscaler/aws/groups.js';
import { AutoscalerMetrics } from '../../autoscaler/metrics.js';
import { AutoScalingStandIn } from '../../autoscaler/testing/autoscaling-stand-in.js';
import type { Job } from '../../contracts/index.js';
import { poolPolicies } from '../../platform/config/autoscale-pools.js';
import { createLogger } from '../../platform/logging/logging.js';
import type { RunningWorker } from '../../worker/agent/start.js';
import { fakeStateDigest } from '../../worker/testing/fake-state.js';
import { Fleet } from '../../worker/testing/fleet.js';
import { type MetadataService, startMetadataService } from '../../worker/testing/metadata-service.js';

const SLOTS = 4;
const GROUP = 'zf-default';
const ROUND_MS = 200;
const DEADLINE_MS = 120_000;

/** Instances and their agents. */
class Region {
  private readonly machines = new Map<string, { metadata: MetadataService; agent: RunningWorker }>();

  private constructor(
    readonly aws: AutoScalingStandIn,
    private readonly fleet: Fleet,
    private readonly autoscaler: Autoscaler,
  ) {}

  static async start(t: Test): Promise<{ region: Region; fleet: Fleet }> {
    const fleet = await Fleet.start({ ranks: { step_ms: 20 } });
    t.teardown(() => fleet.close());
    const log = createLogger({ level: process.env.ZF_TEST_LOG ? 'info' : 'silent', name: 'autoscaler' });
    const pools = poolPolicies(
      JSON.stringify([
        { pool: 'default', idle_seconds: 1, types: [{ name: 'gpu', group: GROUP, slots: SLOTS, max: 3 }] },
      ]),
    );
    const aws = new AutoScalingStandIn();
    aws.addGroup(GROUP, 3, ['drain']);
    const endpoint = await aws.listen();
    t.teardown(() => aws.close());
    const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' };
    const client = new AutoScalingClient({
      endpoint,
      region: 'eu-central-1',
      credentials,
    });
    t.teardown(() => client.destroy());
    const autoscaler = new Autoscaler({
      store: fleet.store,
      capacity: new AwsCapacity({ groups: new Groups(client), log }),
      backgroundTasks: { count: async () => 0 },
      pools,
      interval_ms: ROUND_MS,
      metrics: new AutoscalerMetrics(),
      publisher: null,
      log,
    });
    t.teardown(() => autoscaler.close());
    const region = new Region(aws, fleet, autoscaler);
    t.teardown(() => region.close());
    return { region, fleet };
  }

  states(): string[] {
    return this.aws.group(GROUP).instances.map(({ state }) => state);
  }

  get agents(): string[] {
    return [...this.machines.keys()];
  }

  /** Advances step by step until the condition holds. */
  async until(condition: string, is: () => boolean | Promise<boolean>): Promise<void> {
    for (const deadline = Date.now() + DEADLINE_MS; !(await is()); await sleep(ROUND_MS)) {
      if (Date.now() > deadline) throw new Error(`timed out: ${condition}; ${this.states().join(', ')}`);
      this.aws.advance();
      await this.follow();
      await this.autoscaler.reconcile();
    }
  }

  /** Each instance in service has an agent and current metadata; the agent stops with its instance. */
  private async follow(): Promise<void> {
    const { instances } = this.aws.group(GROUP);
    for (const { id, state } of instances) {
      if (state === 'InService' && !this.machines.has(id)) await this.boot(id);
      if (state.startsWith('Terminating'))
        this.machines.get(id)?.metadata.documents.set('autoscaling/target-lifecycle-state', 'Terminated');
    }
    for (const id of this.agents) if (!instances.some((each) => each.id === id)) await this.end(id);
  }

  /** Sends EC2's interruption notice: the instance ends in two minutes. */
  notice(id: string): void {
    const time = new Date(Date.now() + 120_000).toISOString();
    const text = JSON.stringify({ action: 'terminate', time });
    this.machines.get(id)?.metadata.documents.set('spot/instance-action', text);
  }

  private async boot(id: string): Promise<void> {
    const metadata = await startMetadataService();
    metadata.documents.set('instance-id', id);
    metadata.documents.set('autoscaling/target-lifecycle-state', 'InService');
    const env = { ZEROFLEET_PREEMPTION_SOURCE: metadata.url, ZEROFLEET_MACHINE_ID: 'aws' };
    this.machines.set(id, { metadata, agent: await this.fleet.agent(SLOTS, {}, env) });
  }

  private async end(id: string): Promise<void> {
    const machine = this.machines.get(id);
    this.machines.delete(id);
    await machine?.agent.close();
    await machine?.metadata.close();
  }

  private async close(): Promise<void> {
    for (const id of this.agents) await this.end(id);
  }
}

t.test('an interrupted instance is drained, released and replaced; an idle one is ended', async (t) => {
  const { region, fleet } = await Region.start(t);
  const job = async (): Promise<Job | null> => fleet.store.getJob(id);
  const id = await fleet.submit({ steps: 400, every_steps: 1000, ranks: 2, max_errors: 0 });
  await region.until('it trains', async () => ((await job())?.progress.step ?? 0) >= 5);
  const [first = ''] = region.agents;
  t.match(
    await fleet.store.listWorkers(),
    [{ machine: first, used_slots: 2 }],
    'the agent knows its instance',
  );

  region.aws.interrupt(first);
  await region.until('its job was released', async () => {
    const workers = await fleet.store.listWorkers();
    const works = workers.some(({ machine, used_slots }) => machine === first && used_slots > 0);
    const state = region.aws.group(GROUP).instances.find((each) => each.id === first)?.state;
    t.notOk(works && state === 'Terminating:Proceed', 'it is not released while it is busy');
    return (await fleet.store.drainedMachines()).includes(first);
  });
  const saved = await job();
  t.ok((saved?.latest_checkpoint?.step ?? 0) >= 5, 'it saved first');
  t.equal(saved?.lost_work_seconds, 0);
  await region.until('it is gone', () => !region.agents.includes(first) && region.agents.length === 1);
  t.ok(region.aws.calls.includes(`CompleteLifecycleAction ${GROUP} ${first}`), 'the autoscaler released it');

  await region.until('the job ends', async () => (await job())?.state === 'succeeded');
  t.equal((await job())?.export?.state_digest, fakeStateDigest(1, 400), 'to the same bits');
  await region.until('nothing is left', () => region.states().length === 0);
  t.equal(region.aws.group(GROUP).desired, 0);
  const ended = region.aws.calls.filter((call) => call.startsWith('Terminate'));
  t.equal(ended.length, 1, 'the second one, when it was idle');
  t.notMatch(ended[0], first);
});

t.test('on a spot notice a replacement is requested before this instance ends', async (t) => {
  const { region, fleet } = await Region.start(t);
  const id = await fleet.submit({ steps: 3000, every_steps: 1000, ranks: 4, max_errors: 0 });
  const job = () => fleet.store.getJob(id);
  await region.until('it trains', async () => ((await job())?.progress.step ?? 0) >= 5);
  const [first = ''] = region.agents;
  region.notice(first);
  await region.until('there is another one', () => region.agents.some((each) => each !== first));
  await region.until('it trains there', async () => {
    const workers = await fleet.store.listWorkers();
    return workers.some(({ machine, used_slots }) => machine !== first && used_slots === 4);
  });
  await region.until('the first one is gone', () => !region.agents.includes(first));
  const ended = region.aws.calls.filter((call) => call.startsWith('Terminate'));
  t.same(
    ended,
    [`TerminateInstanceInAutoScalingGroup ${first}`],
    'it requested its termination, and was terminated',
  );
  t.equal((await job())?.lost_work_seconds, 0);
  await fleet.store.requestCancel(id);
});
