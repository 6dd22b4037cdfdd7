/**
 * Cost of the autoscaler on Kubernetes: `npm run bench -- kubernetes --rounds 20 --pods 1000 --seconds 60`.
 *
 * - `delay`: from the record of a job of three machines to the last request of a machine, on stand-ins in memory for
 *   Kubernetes and Slurm, and over HTTP for AWS, in turn. The autoscaler decides when the record is there; in
 *   production it decides every ZEROFLEET_AUTOSCALE_INTERVAL_SECONDS.
 * - `rest`, `scale-up`, `launch`, `observed`, `start`: an autoscaler in its own process on a real control plane without
 *   nodes (tools/test/kubernetes/build.sh). Requests are those of the server's audit log. `observed` has all pods, of
 *   which each is changed once.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { AutoScalingClient } from '@aws-sdk/client-auto-scaling';
import { Autoscaler } from '../autoscaler/autoscaler.js';
import { AwsCapacity } from '../autoscaler/aws/aws-capacity.js';
import { Groups } from '../autoscaler/aws/groups.js';
import type { Capacity } from '../autoscaler/capacity/port.js';
import { KubernetesCapacity } from '../autoscaler/kubernetes/kubernetes-capacity.js';
import { AutoscalerMetrics } from '../autoscaler/metrics.js';
import { SlurmCapacity } from '../autoscaler/slurm/slurm-capacity.js';
import { AutoScalingStandIn } from '../autoscaler/testing/autoscaling-stand-in.js';
import { KubernetesStandIn } from '../autoscaler/testing/kubernetes-stand-in.js';
import { SlurmStandIn } from '../autoscaler/testing/slurm-stand-in.js';
import { poolPolicies } from '../platform/config/autoscale-pools.js';
import { createLogger } from '../platform/logging/logging.js';
import { programPath } from '../platform/process/programs.js';
import { AUTOSCALER, ControlPlane, whyNoKubernetes } from '../platform/testing/kubernetes/control-plane.js';
import { startTestRedis } from '../platform/testing/redis.js';
import { type JobStore, openJobStore } from '../state/index.js';
import { createTestJob } from '../state/testing/jobs.js';
import { memoryOf } from './memory/process-memory.js';
import { benchOptions, count } from './options.js';
import { median, report } from './report.js';

const options = benchOptions({ rounds: count(20), pods: count(1_000), seconds: count(60) });

const RANKS = 3;
const POLL_MS = 100;
const TICKS_PER_SECOND = 100;
const NAMESPACE = 'training';
const log = createLogger({ level: 'warn', name: 'bench' });
const rounded = (value: number) => Number(value.toPrecision(3));

function policyOf(pool: string, machines: number) {
  const kubernetes = { image: 'worker:1', resources: { cpu: '1' } };
  const types = [{ name: pool, slots: 1, max: machines, kubernetes, slurm: {} }];
  const [policy] = poolPolicies(JSON.stringify([{ pool, launch_timeout_seconds: 86_400, types }]));
  if (!policy) throw new Error('no pool');
  return policy;
}

const createJob = (store: JobStore, pool: string, ranks: number) =>
  createTestJob(store, {
    resources: { pool, ranks: { min: ranks, max: ranks, preferred: ranks } },
    train: { steps: 100, global_batch_size: ranks, micro_batch_size: 1 },
  });

/** A source of machines on a stand-in. */
interface Source {
  name: string;
  capacity: Capacity;
  /** Machines that were requested. */
  requested(): number;
}

async function measureDelays(store: JobStore): Promise<void> {
  const pods = new KubernetesStandIn(Date.now);
  const slurm = new SlurmStandIn(Date.now);
  const aws = new AutoScalingStandIn();
  const machines = RANKS * options.rounds;
  const group = aws.addGroup('aws', machines);
  const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' };
  const client = new AutoScalingClient({ endpoint: await aws.listen(), region: 'eu-central-1', credentials });
  const agent = { command: ['agent'], env: {}, log_dir: '/logs' };
  const sources: Source[] = [
    {
      name: 'kubernetes',
      capacity: new KubernetesCapacity({ api: pods, log }),
      requested: () => pods.pods.size,
    },
    {
      name: 'aws',
      capacity: new AwsCapacity({ groups: new Groups(client), log }),
      requested: () => group.desired,
    },
    {
      name: 'slurm',
      capacity: new SlurmCapacity({ commands: slurm, installation: 'here', agent, log }),
      requested: () => slurm.queue.size,
    },
  ];
  const delays = new Map(sources.map(({ name }) => [name, [] as number[]]));
  for (let round = 1; round <= options.rounds; round += 1)
    for (const { name, capacity, requested } of sources) {
      const autoscaler = new Autoscaler({
        ...{ store, capacity, backgroundTasks: { count: async () => 0 }, pools: [policyOf(name, machines)] },
        ...{ interval_ms: 5_000, metrics: new AutoscalerMetrics(), publisher: null, log },
      });
      // The list, and the watch of pods.
      await autoscaler.reconcile();
      await createJob(store, name, RANKS);
      const began = performance.now();
      const reconciling = autoscaler.reconcile();
      while (requested() < RANKS * round) await sleep(1);
      delays.get(name)?.push(performance.now() - began);
      await reconciling;
      await autoscaler.close();
    }
  for (const { capacity } of sources) await capacity.close();
  client.destroy();
  await aws.close();
  for (const [source, all] of delays)
    report('kubernetes', {
      ...{ phase: 'delay', source, rounds: options.rounds, machines: RANKS },
      ...{ median_ms: rounded(median(all)), max_ms: rounded(Math.max(...all)) },
    });
}

/** An autoscaler in its own process, on a control plane without nodes. */
class Observed {
  private child: ChildProcess | null = null;

  private constructor(
    readonly plane: ControlPlane,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  static async open(plane: ControlPlane, redisUrl: string): Promise<Observed> {
    await plane.client.post('/api/v1/namespaces', { metadata: { name: NAMESPACE } });
    return new Observed(plane, {
      PATH: process.env.PATH,
      KUBECONFIG: await plane.autoscalerKubeconfig(NAMESPACE),
      ZEROFLEET_REDIS_URL: redisUrl,
      ZEROFLEET_AUTOSCALE_CAPACITY: 'kubernetes',
      ZEROFLEET_AUTOSCALE_POOLS: JSON.stringify([policyOf('observed', options.pods)]),
      ZEROFLEET_LOG_LEVEL: 'warn',
    });
  }

  start(): void {
    const program = programPath('autoscaler/main');
    this.child = spawn(process.execPath, [program], {
      env: this.env,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  }

  async stop(): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  }

  private get pid(): number {
    return this.child?.pid ?? 0;
  }

  async pods() {
    return (await this.plane.client.get(`/api/v1/namespaces/${NAMESPACE}/pods`)).items ?? [];
  }

  async untilPods(pods: number): Promise<void> {
    while ((await this.pods()).length < pods) await sleep(POLL_MS);
  }

  /** Seconds of user and system time. */
  private async processor(): Promise<number> {
    const stat = await readFile(`/proc/${this.pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  }

  private async requests(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { user, verb } of await this.plane.audit())
      if (user.username.endsWith(`:${AUTOSCALER}`)) counts[verb] = (counts[verb] ?? 0) + 1;
    return counts;
  }

  /** Reports what the autoscaler used during `work`. */
  async measure(phase: string, work: () => Promise<unknown>): Promise<void> {
    const [before, cpu, began] = [await this.requests(), await this.processor(), performance.now()];
    await work();
    const seconds = (performance.now() - began) / 1000;
    const after = await this.requests();
    const requests = Object.entries(after).map(([verb, num]) => [verb, num - (before[verb] ?? 0)] as const);
    report('kubernetes', {
      ...{ phase, pods: (await this.pods()).length, seconds: rounded(seconds) },
      requests: Object.fromEntries(requests.filter(([, num]) => num > 0)),
      processor_seconds: rounded((await this.processor()) - cpu),
      ...(await memoryOf(this.pid)),
    });
  }

  /** Reports each pod as running, as its node would. */
  async runAll(): Promise<void> {
    const state = { running: { startedAt: new Date().toISOString() } };
    const container = { name: 'agent', image: 'worker:1', imageID: '', ready: true, restartCount: 0, state };
    for (const { metadata } of await this.pods())
      await this.plane.client.patch(`/api/v1/namespaces/${NAMESPACE}/pods/${metadata.name}/status`, {
        status: { phase: 'Running', containerStatuses: [container] },
      });
  }
}

async function measureOnControlPlane(store: JobStore, redisUrl: string): Promise<void> {
  const reason = await whyNoKubernetes();
  if (reason !== null) {
    report('kubernetes', { phase: 'observed', reason });
    return;
  }
  const plane = await ControlPlane.start({ nodes: 0, images: {} });
  const observed = await Observed.open(plane, redisUrl);
  const rest = () => sleep(options.seconds * 1000);
  try {
    observed.start();
    await sleep(10_000);
    await observed.measure('rest', rest);
    await observed.measure('scale-up', async () => {
      await createJob(store, 'observed', RANKS);
      await observed.untilPods(RANKS);
    });
    await observed.measure('launch', async () => {
      const most = 500;
      for (let left = options.pods - RANKS; left > 0; left -= most)
        await createJob(store, 'observed', Math.min(left, most));
      await observed.untilPods(options.pods);
    });
    await observed.measure('observed', () => Promise.all([observed.runAll(), rest()]));
    await observed.measure('rest', rest);
    await observed.stop();
    observed.start();
    await observed.measure('start', () => sleep(10_000));
  } finally {
    await observed.stop();
    await plane.stop();
  }
}

const redis = await startTestRedis();
const store = await openJobStore({ url: redis.url });
try {
  await measureDelays(store);
  await measureOnControlPlane(store, redis.url);
} finally {
  await store.close();
  await redis.stop();
}
