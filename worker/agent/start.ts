import { join } from 'node:path';
import { type Config, GRACE_PERIOD, SLURM_ALLOCATION } from '../../platform/config/config.js';
import type { Logger } from '../../platform/logging/logging.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { serveMetrics } from '../../platform/process/metrics-server.js';
import { programPath } from '../../platform/process/programs.js';
import { addressTowards } from '../../platform/redis/route.js';
import { openJobStore } from '../../state/index.js';
import { ChildProcesses, type Fork } from '../shared/child-processes.js';
import { DEFAULT_TIMING, type Timing, timingOf } from '../shared/timing.js';
import { Agent } from './agent.js';
import type { WorldLinks } from './attempt/context.js';
import { type Compute, findCompute, inspectMachineByTask } from './compute.js';
import { openSessions, type Sessions } from './credentials/sessions.js';
import { GpuWatch } from './gpus/gpu-watch.js';
import { LinkServer } from './link/link-server.js';
import { AgentMetrics } from './metrics/agent-metrics.js';
import { AwsMetadata } from './preemption/aws-metadata.js';
import { Drain } from './preemption/drain.js';
import { GracePeriod } from './preemption/grace-period.js';
import { machineId, machineTopology, reportDrained } from './preemption/machine.js';
import { SlurmAllocation } from './preemption/slurm-allocation.js';
import type { PreemptionSource } from './preemption/source.js';
import { openGraders } from './project-graders.js';

export interface StartWorkerOptions {
  config: Config;
  redisUrl: string;
  objectStoreUrl: string;
  log: Logger;
  timing?: Timing;
  /** Source of preemption notices; by default the configured one. */
  preemption?: PreemptionSource;
  /** Main modules of the child processes; tests run ranks without the native core. */
  programs?: { rank: string; task: string };
  /** Replaces Node's `fork`. */
  fork?: Fork;
}

export interface RunningWorker {
  /** URL of its metrics; null when it serves none. */
  readonly metricsUrl: string | null;
  readonly id: string;
  /** Saves and returns every job, then ends. Idempotent. */
  close(): Promise<void>;
}

/** Amazon's recommended interval; a notice comes two minutes before. */
const PREEMPTION_POLL_MS = 5_000;

/** Main modules of the child processes. */
const PROGRAMS = {
  rank: programPath('worker/rank/main'),
  task: programPath('worker/tasks/main'),
};

/**
 * Starts an agent and resolves when it takes jobs.
 * @throws ZerofleetError `job_store_unavailable`, `invalid_configuration`, `device_unavailable`; ObjectStoreError for
 *   an unusable directory
 */
export async function startWorker(options: StartWorkerOptions): Promise<RunningWorker> {
  const { config, redisUrl, objectStoreUrl, log } = options;
  const { programs = PROGRAMS, fork, timing = timingOf(config) } = options;
  const processes = new ChildProcesses({ programs, kill_ms: timing.kill_ms, log, ...(fork && { fork }) });
  const compute = await findCompute(config, processes, log);
  const { slots } = compute;
  const objects = await openObjectStore(objectStoreUrl, {
    s3Endpoint: config.s3_endpoint,
    // A configured directory must exist, as in the API; otherwise its disk may not be mounted.
    create: config.object_store === null,
  });
  const store = await openJobStore({ url: redisUrl, log }).catch(async (error) => {
    await objects.close();
    throw error;
  });
  const graders = openGraders(config, store);
  const opened: { close(): Promise<void> }[] = [graders, store, objects];
  const closeOpened = async () => {
    for (const part of opened) await part.close();
  };
  const metrics = new AgentMetrics({ pool: config.pool, slots });
  const fail = (error: unknown) =>
    closeOpened().then(() => {
      throw error;
    });
  const { metrics_url: metricsUrl, ...parts } = await openServers(metrics, options, opened).catch(fail);
  const agent = new Agent({
    store,
    objects,
    ...parts,
    graders,
    object_store: { url: objectStoreUrl, s3_endpoint: config.s3_endpoint },
    processes,
    cache_dir: join(config.data_dir, 'cache', 'tokens'),
    cache_bytes: config.cache_bytes,
    ...compute,
    threads_per_rank: config.threads_per_rank,
    price_per_rank_hour: config.price_per_rank_hour,
    timing,
    metrics,
    drain: new Drain(),
    log,
    redis_url: redisUrl,
    pool: config.pool,
  });
  await agent.ready();
  log.info({ worker: agent.id, pool: config.pool, slots, numerics: compute.numerics }, 'taking jobs');
  if (metricsUrl !== null) log.info({ url: metricsUrl }, 'metrics');
  const watch = watchGpus(compute, metrics, processes, log);
  const closing = new AbortController();
  // An autoscaler may replace the machine.
  processes.onChange(() => {
    if (processes.problem !== null) void reportDrained(store, parts.machine, log, closing.signal);
  });
  const stopWatching = drainOnNotice(agent, options, (signal) =>
    reportDrained(store, parts.machine, log, signal),
  );
  let closed: Promise<void> | null = null;
  const close = async () => {
    closing.abort();
    await stopWatching();
    await Promise.all([watch?.close(), agent.close()]);
    await closeOpened();
  };
  return {
    metricsUrl,
    id: agent.id,
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}

/** Interval of GPU inspections without a fault. */
const GPU_WATCH_MS = 60_000;

function watchGpus(
  { gpus: ofRanks, answer_gpus }: Compute,
  metrics: AgentMetrics,
  processes: ChildProcesses,
  log: Logger,
): GpuWatch | null {
  if (ofRanks === null) return null;
  const pools = [ofRanks, ...(answer_gpus === null ? [] : [answer_gpus])];
  const watch = new GpuWatch({
    pools,
    interval_ms: GPU_WATCH_MS,
    inspect: (signal) => inspectMachineByTask(processes, { gpus: true, cuda: false }, { log, signal }),
    log,
  });
  const update = () => metrics.gpus({ slots: ofRanks.slots, gpus: pools.flatMap((pool) => pool.gpus) });
  update();
  for (const pool of pools) {
    pool.onChange(update);
    pool.onFault(() => watch.inspectNow());
  }
  return watch;
}

interface Servers {
  links: WorldLinks;
  machine: string | null;
  topology: string[];
  sessions: Sessions | null;
  metrics_url: string | null;
}

/** Opens servers and clients; each is put first into `opened`, which is closed in its order. */
async function openServers(
  metrics: AgentMetrics,
  { config, redisUrl, objectStoreUrl, timing = DEFAULT_TIMING, log }: StartWorkerOptions,
  opened: { close(): Promise<void> }[],
): Promise<Servers> {
  const sessions = await openSessions(config, objectStoreUrl, { retry: timing.storage, metrics, log });
  if (sessions) opened.unshift(sessions);
  const machine = await machineId(config);
  const topology = await machineTopology(config);
  const { host, metrics_port: port } = config;
  const metricsServer = port === null ? null : await serveMetrics({ host, port, metrics });
  if (metricsServer) opened.unshift(metricsServer);
  const address = config.address ?? (await addressTowards(redisUrl));
  const server = await LinkServer.listen(address, log);
  opened.unshift(server);
  return {
    links: { address, server },
    machine,
    topology,
    sessions,
    metrics_url: metricsServer && `${metricsServer.url}/metrics`,
  };
}

/**
 * Drains the agent on a preemption notice. The process keeps running without work, because a restarted one might take
 * jobs before the machine terminates.
 * @param onDrained called when every job was returned; its signal ends with the watch
 * @returns function that ends the watch
 */
function drainOnNotice(
  agent: Agent,
  { config, log, preemption }: StartWorkerOptions,
  onDrained: (signal: AbortSignal) => Promise<void>,
): () => Promise<void> {
  const source = preemption ?? sourceOf(config, log);
  const watching = new AbortController();
  const watch = async () => {
    const notice = await source?.watch(watching.signal);
    if (!notice) return;
    log.warn({ ...notice }, 'preemption notice: saving and returning every job');
    await agent.close(notice);
    await onDrained(watching.signal);
  };
  const watched = watch();
  return async () => {
    watching.abort();
    await watched;
  };
}

function sourceOf({ preemption_source: source }: Config, log: Logger): PreemptionSource | null {
  if (source === null) return null;
  if (source === SLURM_ALLOCATION) return new SlurmAllocation({ env: process.env, log });
  const [, graceSeconds] = GRACE_PERIOD.exec(source) ?? [];
  if (graceSeconds !== undefined) return new GracePeriod(Number(graceSeconds) * 1000);
  return new AwsMetadata({ url: source, poll_ms: PREEMPTION_POLL_MS, log });
}
