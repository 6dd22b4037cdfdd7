import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from '../platform/config.js';
import { openJobStore } from '../platform/job-store/index.js';
import type { Logger } from '../platform/logging.js';
import { openObjectStore } from '../platform/object-store/index.js';
import { Agent } from './agent/agent.js';
import { DEFAULT_TIMING, type Timing } from './agent/timing.js';
import { AgentMetrics } from './metrics/agent-metrics.js';
import { serveMetrics } from './metrics/metrics-server.js';

export interface StartWorkerOptions {
  config: Config;
  redisUrl: string;
  objectStoreUrl: string;
  log: Logger;
  timing?: Timing;
  /** Other main modules for the child processes; tests run ranks without the native core. */
  programs?: { rank: string; task: string };
}

export interface RunningWorker {
  /** Where its metrics are; null when it serves none. */
  readonly metrics_url: string | null;
  /** Saves and hands back every job, then ends. Idempotent. */
  close(): Promise<void>;
}

/** The main modules of the child processes, beside this one. */
const PROGRAMS = {
  rank: fileURLToPath(new URL('rank/main.js', import.meta.url)),
  task: fileURLToPath(new URL('tasks/main.js', import.meta.url)),
};

/**
 * Starts an agent; it takes jobs when this resolves.
 * @throws ZerofleetError `job_store_unavailable`, `invalid_configuration`; ObjectStoreError when a directory can't be used
 */
export async function startWorker(options: StartWorkerOptions): Promise<RunningWorker> {
  const { config, redisUrl, objectStoreUrl, log } = options;
  const objects = await openObjectStore(objectStoreUrl, { s3Endpoint: config.s3_endpoint, create: true });
  const store = await openJobStore({ url: redisUrl, log }).catch(async (error) => {
    await objects.close();
    throw error;
  });
  const metrics = new AgentMetrics({ pool: config.pool, slots: config.slots });
  const closeStores = () => Promise.all([store.close(), objects.close()]);
  const server =
    config.metrics_port === null
      ? null
      : await serveMetrics(metrics, config.host, config.metrics_port).catch(async (error: unknown) => {
          await closeStores();
          throw error;
        });
  const agent = new Agent({
    store,
    objects,
    object_store: { url: objectStoreUrl, s3_endpoint: config.s3_endpoint },
    programs: options.programs ?? PROGRAMS,
    cache_dir: join(config.data_dir, 'cache', 'tokens'),
    slots: config.slots,
    threads_per_rank: config.threads_per_rank,
    timing: options.timing ?? DEFAULT_TIMING,
    metrics,
    log,
    redis_url: redisUrl,
    pool: config.pool,
  });
  let closed: Promise<void> | null = null;
  const close = async () => {
    await agent.close();
    await server?.close();
    await closeStores();
  };
  await agent.ready();
  log.info({ worker: agent.id, pool: config.pool, slots: config.slots }, 'taking jobs');
  if (server) log.info({ url: server.url }, 'metrics');
  return {
    metrics_url: server?.url ?? null,
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
