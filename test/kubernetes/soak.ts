/** Cycles of a pool from no pod to three and back, then pods, nodes and the API server that go at random. */
import { setTimeout as sleep } from 'node:timers/promises';
import { untilDone } from '../../platform/testing/waiting.js';
import { Random } from '../chaos/random.js';
import { KubernetesStack, NAMESPACE, POD } from '../support/kubernetes-stack.js';
import type { Owner } from '../support/stack.js';
import { type Compared, PodJobs } from './pod-jobs.js';

interface SoakOptions {
  cycles: number;
  minutes: number;
  /** Time without an API server, once. */
  outage_seconds: number;
  seed: number;
}

interface SoakReport extends SoakOptions {
  /** Pods of each cycle. */
  pods_by_cycle: number[];
  disturbances: Record<string, number>;
  /** Pods that the API server created, those that a disturbance ended, and the most that lived at once. */
  created: number;
  disturbed: number;
  most_at_once: number;
  requests: Record<string, number>;
  steps: number;
  findings: string[];
}

const RANKS = 3;
const NODES = 4;
/** A pod that ends sooner by itself counts as a failed launch, and pauses its type. */
const LAUNCH_MS = 60_000;
const COUNT_MS = 500;
const NODE_AWAY_MS = 10_000;
const MAX_SERVER_AWAY_MS = 10_000;
const POOLS = [
  {
    pool: 'default',
    idle_seconds: 5,
    move_seconds: null,
    types: [{ name: 'node', slots: 1, max: NODES, kubernetes: POD }],
  },
];
const KINDS = { pod: 4, agent: 2, node: 3, server: 1, autoscaler: 1, resize: 2 };
type Kind = keyof typeof KINDS;

export async function runSoak(owner: Owner, options: SoakOptions): Promise<SoakReport> {
  const stack = await KubernetesStack.start(owner, { nodes: NODES, pools: POOLS });
  return new Soak(stack, await PodJobs.start(stack), options).run();
}

class Soak {
  private readonly random: Random;
  private readonly counts: Partial<Record<Kind, number>> = {};
  /** Uids of pods that were ended by a disturbance. */
  private readonly disturbed = new Set<string>();
  private ranks = RANKS;

  constructor(
    private readonly stack: KubernetesStack,
    private readonly jobs: PodJobs,
    private readonly options: SoakOptions,
  ) {
    this.random = new Random(options.seed);
  }

  async run(): Promise<SoakReport> {
    const byCycle: number[] = [];
    for (let cycle = 1; cycle <= this.options.cycles; cycle += 1) {
      const before = await this.stack.granted();
      await this.jobs.cycle(`cycle ${cycle}`);
      byCycle.push((await this.stack.granted()) - before);
    }
    const ending = new AbortController();
    const most = this.countPods(ending.signal);
    const disturbances = await this.disturb().finally(() => ending.abort());
    const mostAtOnce = await most;
    const compared = await this.jobs.compare();
    const requests: Record<string, number> = {};
    for (const { verb } of await this.stack.requests()) requests[verb] = (requests[verb] ?? 0) + 1;
    return {
      ...this.options,
      pods_by_cycle: byCycle,
      disturbances,
      created: await this.stack.granted(),
      disturbed: this.disturbed.size,
      most_at_once: mostAtOnce,
      requests,
      steps: Math.max(...compared.map(({ step }) => step)),
      findings: [
        ...byCycle.flatMap((pods, index) => (pods === RANKS ? [] : [`cycle ${index + 1} had ${pods} pods`])),
        ...this.stack.plane.kubelets.overdue.map((pod) => `${pod} outlived its grace period`),
        ...(mostAtOnce > RANKS ? [`${mostAtOnce} pods for ${RANKS} ranks`] : []),
        ...compared.flatMap(findingsOf),
      ],
    };
  }

  /** Returns the most pods that the server had at once, without those that are being deleted. */
  private async countPods(signal: AbortSignal): Promise<number> {
    let most = 0;
    while (!signal.aborted) {
      // The server may be away.
      most = Math.max(most, await this.stack.staying().catch(() => 0));
      await sleep(COUNT_MS);
    }
    return most;
  }

  private async disturb(): Promise<SoakReport['disturbances']> {
    const until = Date.now() + this.options.minutes * 60_000;
    const id = await this.jobs.create('disturbed', { min: 1, max: RANKS });
    await this.resize(id, RANKS);
    await this.jobs.untilTraining(id, this.ranks);
    if (this.options.outage_seconds > 0) await this.loseServer(this.options.outage_seconds * 1000);
    while (Date.now() < until) {
      const kind = this.random.weighted(KINDS);
      if (!(await this.disturbOnce(kind, id))) continue;
      this.counts[kind] = (this.counts[kind] ?? 0) + 1;
      // Some disturbances hit a job that has not recovered from the one before.
      if (this.random.next() < 0.3) await sleep(this.random.between(0, 5_000));
      else await this.jobs.untilTraining(id, this.ranks);
    }
    await this.jobs.untilTraining(id, this.ranks);
    await this.jobs.finish('disturbed', id);
    await this.jobs.untilPods(0);
    return this.counts;
  }

  /** Returns false if there is nothing to disturb. */
  private async disturbOnce(kind: Kind, id: string): Promise<boolean> {
    const { plane, autoscaler } = this.stack;
    if (kind === 'server') await this.loseServer(this.random.between(0, MAX_SERVER_AWAY_MS));
    else if (kind === 'resize') await this.resize(id, this.random.between(1, RANKS));
    else if (kind === 'autoscaler') {
      await autoscaler.kill();
      autoscaler.start();
    } else {
      const pods = await this.stack.running();
      const isOld = ({ started_at }: (typeof pods)[number]) => Date.now() - started_at > 2 * LAUNCH_MS;
      const pod = this.random.pick(kind === 'agent' ? pods.filter(isOld) : pods);
      if (!pod) {
        await sleep(1_000);
        return false;
      }
      if (kind === 'node') return this.loseNode(pod.node);
      this.disturbed.add(pod.uid);
      if (kind === 'agent') plane.kubelets.kill(pod.name);
      else
        await plane.client.delete(`/api/v1/namespaces/${NAMESPACE}/pods/${pod.name}`).catch(() => undefined);
    }
    return true;
  }

  private async resize(id: string, ranks: number): Promise<void> {
    this.ranks = ranks;
    await this.stack.cluster.client.jobs.resize(id, ranks);
  }

  private async loseNode(node: string): Promise<boolean> {
    const { plane } = this.stack;
    for (const pod of await this.stack.running()) if (pod.node === node) this.disturbed.add(pod.uid);
    await plane.kubelets.killNode(node);
    await plane.client.delete(`/api/v1/nodes/${node}`);
    await sleep(NODE_AWAY_MS);
    await plane.kubelets.startNode(node);
    return true;
  }

  private async loseServer(ms: number): Promise<void> {
    await this.stack.plane.killServer();
    await sleep(ms);
    await this.stack.plane.restartServer();
    await untilDone(() => this.stack.running());
  }
}

function findingsOf({ name, step, state_digest, expected, missing_steps }: Compared): string[] {
  return [
    ...(expected === null || state_digest !== expected ? [`${name}: other bits at step ${step}`] : []),
    ...missing_steps.map((missing) => `${name}: step ${missing} was not reported`),
  ];
}
