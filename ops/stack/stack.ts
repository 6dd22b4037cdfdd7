import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import type { FirstKey } from '../../api/first-key.js';
import { type ApiServer, startApi } from '../../api/server.js';
import type { Config } from '../../platform/config/config.js';
import type { Logger } from '../../platform/logging/logging.js';
import { programPath } from '../../platform/process/programs.js';
import { startEmbeddedRedis } from '../../platform/redis/embedded.js';
import { ChildProgram } from './child-program.js';
import { keepAlive } from './keep-alive.js';
import { type StackParts, UsageError } from './options.js';

interface StackOptions {
  config: Config;
  parts: StackParts;
  log: Logger;
  /** Destination of the output of child processes; standard error when absent. */
  output?: Writable;
}

/** A running stack. */
export interface Stack {
  /** URL of the API; null if it runs no API. */
  readonly url: string | null;
  readonly firstKey: FirstKey | null;
  /** Stops everything in the order worker, API, Redis, so that no report is lost. Idempotent. */
  stop(): Promise<void>;
}

type Closer = () => Promise<unknown>;

/** Redis URL; starts the private Redis if none is configured. */
async function redisUrl({ config, parts, log }: StackOptions, closers: Closer[]): Promise<string> {
  if (config.redis_url !== null) return config.redis_url;
  if (!parts.api)
    throw new UsageError('--worker-only needs ZEROFLEET_REDIS_URL: a worker joins an existing stack');
  const dir = join(config.data_dir, 'redis');
  let url = '';
  const start = async () => {
    const redis = await startEmbeddedRedis({ dir, log });
    url = redis.url;
    return redis;
  };
  const kept = await keepAlive('Redis', start, log);
  closers.push(() => kept.stop());
  return url;
}

/** Object store URL; creates the directory below the data directory if none is configured. */
function objectStoreUrl({ config, parts }: StackOptions): string {
  if (config.object_store !== null) return config.object_store;
  if (!parts.api)
    throw new UsageError('--worker-only needs ZEROFLEET_OBJECT_STORE, the same as the rest of the stack');
  const dir = join(config.data_dir, 'objects');
  mkdirSync(dir, { recursive: true });
  return pathToFileURL(dir).href;
}

const PROGRAMS = {
  worker: programPath('worker/agent/main'),
  autoscaler: programPath('autoscaler/main'),
};
type ChildName = keyof typeof PROGRAMS;

async function startChild(
  name: ChildName,
  options: StackOptions,
  redis: string,
  objects: string,
): Promise<Closer> {
  const start = () =>
    ChildProgram.start({
      name,
      program: PROGRAMS[name],
      env: {
        ZEROFLEET_REDIS_URL: redis,
        ZEROFLEET_OBJECT_STORE: objects,
        ZEROFLEET_DATA_DIR: options.config.data_dir,
        ZEROFLEET_LOG_LEVEL: options.config.log_level,
      },
      ...(options.output && { output: options.output }),
    });
  const kept = await keepAlive(`the ${name}`, start, options.log);
  return () => kept.stop();
}

/**
 * Starts the parts: a private Redis (unless one is configured), the API in this process, the worker agent or the
 * autoscaler as a child.
 * @throws the error of a part that cannot start; started parts are stopped then
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { config, parts, log } = options;
  mkdirSync(config.data_dir, { recursive: true });
  const closers: Closer[] = [];
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= (async () => {
      for (const close of closers.toReversed()) await close();
    })();
    return stopping;
  };
  try {
    const redis = await redisUrl(options, closers);
    const objects = objectStoreUrl(options);
    let api: ApiServer | null = null;
    if (parts.api) {
      api = await startApi({
        config,
        redisUrl: redis,
        objectStoreUrl: objects,
        log: log.child({ part: 'api' }),
      });
      closers.push(api.close);
    }
    for (const name of ['worker', 'autoscaler'] as const) {
      if (parts[name]) closers.push(await startChild(name, options, redis, objects));
    }
    return { url: api?.url ?? null, firstKey: api?.firstKey ?? null, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
