import { ZerofleetError } from '../contracts/index.js';
import type { PoolPolicy } from '../platform/config/autoscale-pools.js';
import { type Config, CPU_SLOTS } from '../platform/config/config.js';
import { objectStoreUrl, requireRedis } from '../platform/config/stores.js';
import type { Logger } from '../platform/logging/logging.js';
import { serveMetrics } from '../platform/process/metrics-server.js';
import { programPath } from '../platform/process/programs.js';
import { openJobStore } from '../state/index.js';
import { Autoscaler } from './autoscaler.js';
import { openAwsCapacity, openCloudWatch } from './aws/open.js';
import { BackgroundTasks } from './background-tasks.js';
import { LocalCapacity } from './capacity/local.js';
import type { Capacity } from './capacity/port.js';
import { openKubernetesCapacity } from './kubernetes/open.js';
import { AutoscalerMetrics } from './metrics.js';
import { openSlurmCapacity } from './slurm/open.js';

interface StartAutoscalerOptions {
  config: Config;
  log: Logger;
}

interface RunningAutoscaler {
  /** Base URL of `/metrics` and `/healthz`; null if they are not served. */
  readonly url: string | null;
  /** Stops deciding, and ends machines that live only as long as this program. Idempotent. */
  close(): Promise<void>;
}

/** Section that a type must declare, by source of machines. */
const MACHINES = { aws: 'Auto Scaling groups', slurm: 'Slurm options', kubernetes: 'pods' };
/** Default maximum of agents on this machine. */
const LOCAL_AGENTS = 4;

/**
 * Starts the autoscaler for the pools of the configuration.
 * @throws ZerofleetError `invalid_configuration`, `job_store_unavailable`
 */
export async function startAutoscaler({ config, log }: StartAutoscalerOptions): Promise<RunningAutoscaler> {
  const redisUrl = requireRedis(config, 'an autoscaler');
  const pools = poolsOf(config);
  const closers: (() => Promise<void>)[] = [];
  const closeAll = async () => {
    for (const close of closers.toReversed()) await close();
  };
  try {
    const store = await openJobStore({ url: redisUrl, log });
    closers.push(() => store.close());
    const backgroundTasks = new BackgroundTasks(store, redisUrl, log);
    closers.push(() => backgroundTasks.close());
    const metrics = new AutoscalerMetrics();
    const capacity = await openCapacity(config, metrics, log);
    closers.push(() => capacity.close());
    const intervalMs = config.autoscale_interval_seconds * 1000;
    const namespace = config.cloudwatch_namespace;
    const publisher = namespace === null ? null : await openCloudWatch(namespace, metrics, log);
    if (publisher) closers.push(() => publisher.close());
    const options = {
      store,
      capacity,
      backgroundTasks,
      pools,
      interval_ms: intervalMs,
      metrics,
      publisher,
      log,
    };
    const autoscaler = new Autoscaler(options);
    closers.push(() => autoscaler.close());
    const { host, metrics_port: port } = config;
    const server =
      port === null
        ? null
        : await serveMetrics({ host, port, metrics, isHealthy: () => autoscaler.isHealthy });
    if (server) closers.push(() => server.close());
    autoscaler.start();
    log.info(
      { id: autoscaler.id, pools: pools.map(({ pool }) => pool), url: server?.url },
      'autoscaler started',
    );
    let closed: Promise<void> | null = null;
    const close = () => {
      closed ??= closeAll();
      return closed;
    };
    return { url: server?.url ?? null, close };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

function poolsOf(config: Config): readonly PoolPolicy[] {
  if (config.autoscale_pools) {
    if (config.autoscale_capacity === 'aws') requireOwnGroups(config.autoscale_pools);
    if (config.autoscale_capacity === 'kubernetes') requirePods(config.autoscale_pools);
    return config.autoscale_pools;
  }
  if (config.autoscale_capacity !== 'local') {
    const machines = MACHINES[config.autoscale_capacity];
    throw new ZerofleetError(
      'invalid_configuration',
      `ZEROFLEET_AUTOSCALE_CAPACITY=${config.autoscale_capacity} needs ZEROFLEET_AUTOSCALE_POOLS: the pools and the ${machines} of their machines`,
    );
  }
  const type = { name: 'local', slots: config.slots ?? CPU_SLOTS, max: LOCAL_AGENTS, price_per_hour: 0 };
  const timeouts = { idle_seconds: 60, boot_grace_seconds: 60, launch_timeout_seconds: 60, gang_seconds: 60 };
  // Agents on one machine cost nothing, so no move pays.
  return [
    { pool: config.pool, types: [type], min_ranks: 0, move_seconds: null, on_budget: 'pause', ...timeouts },
  ];
}

/** The API server needs at least the image of a pod. */
function requirePods(pools: readonly PoolPolicy[]): void {
  for (const { pool, types } of pools) {
    const without = types.find(({ kubernetes }) => kubernetes === undefined);
    if (without === undefined) continue;
    throw new ZerofleetError(
      'invalid_configuration',
      `ZEROFLEET_AUTOSCALE_POOLS: the type ${without.name} of the pool ${pool} declares no pod; add \`kubernetes\` with an \`image\` ` +
        'and `resources`',
    );
  }
}

/** Two types of one group would overwrite each other's size. */
function requireOwnGroups(pools: readonly PoolPolicy[]): void {
  const groups = pools.flatMap(({ types }) => types.map(({ name, group }) => group ?? name));
  const twice = groups.find((group, index) => groups.indexOf(group) !== index);
  if (twice === undefined) return;
  throw new ZerofleetError(
    'invalid_configuration',
    `ZEROFLEET_AUTOSCALE_POOLS names the Auto Scaling group ${twice} twice; name another as \`group\` of one of the types`,
  );
}

async function openCapacity(config: Config, metrics: AutoscalerMetrics, log: Logger): Promise<Capacity> {
  if (config.autoscale_capacity === 'aws') return openAwsCapacity(log);
  if (config.autoscale_capacity === 'slurm')
    return openSlurmCapacity(config, agentEnvironment(), metrics, log);
  if (config.autoscale_capacity === 'kubernetes') return openKubernetesCapacity(metrics, log);
  const { redis_url, data_dir } = config;
  return new LocalCapacity({
    program: programPath('worker/agent/main'),
    env: {
      ...agentEnvironment(),
      ZEROFLEET_REDIS_URL: redis_url ?? undefined,
      ZEROFLEET_OBJECT_STORE: objectStoreUrl(config),
    },
    data_dir,
    log,
  });
}

/** Environment of this program without the variables that configure the autoscaler alone. */
function agentEnvironment(): Record<string, string | undefined> {
  const own = /^ZEROFLEET_(AUTOSCALE_|CLOUDWATCH_|SLURM_|METRICS_PORT$|PORT$|API_KEY$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.test(name)));
}
