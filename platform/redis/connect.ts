import { Redis, type RedisOptions } from 'ioredis';
import { ZerofleetError } from '../../contracts/index.js';
import type { Logger } from '../logging/logging.js';

/**
 * Purpose of a connection, which decides its behaviour while Redis is unavailable:
 * - `commands`: each command fails within seconds, so that its caller can answer or retry;
 * - `subscriber`: reconnects for ever, its owner renews the subscriptions;
 * - `queue`: as BullMQ needs it, commands wait until Redis is available.
 */
export type RedisPurpose = 'commands' | 'subscriber' | 'queue';

const CONNECT_TIMEOUT_MS = 5_000;
const COMMAND_TIMEOUT_MS = 5_000;
const MAX_RECONNECT_DELAY_MS = 1_000;

const BY_PURPOSE: Readonly<Record<RedisPurpose, RedisOptions>> = {
  commands: {
    commandTimeout: COMMAND_TIMEOUT_MS,
    maxRetriesPerRequest: 2,
    // A command whose reply was lost may have been executed. Its caller knows whether it may be repeated,
    // ioredis does not.
    autoResendUnfulfilledCommands: false,
  },
  subscriber: { commandTimeout: COMMAND_TIMEOUT_MS, maxRetriesPerRequest: null, autoResubscribe: false },
  queue: { maxRetriesPerRequest: null, enableReadyCheck: false },
};

/**
 * Returns connection options for `redis://`, `rediss://` and `unix:///path` URLs.
 * @throws ZerofleetError `invalid_configuration`
 */
export function redisOptions(url: string, purpose: RedisPurpose): RedisOptions {
  return {
    ...address(url),
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: (tries) => Math.min(50 * tries, MAX_RECONNECT_DELAY_MS),
    // After a fail-over the old primary still answers reads, while the name resolves to the new one. The
    // command fails.
    reconnectOnError: ({ message }) => (message.startsWith('READONLY') ? 1 : false),
    ...BY_PURPOSE[purpose],
  };
}

/**
 * Opens a connection, which connects in the background and again whenever it is lost.
 * @throws ZerofleetError `invalid_configuration`
 */
export function openRedis(url: string, purpose: RedisPurpose, log?: Logger): Redis {
  return created(redisOptions(url, purpose), log);
}

/**
 * Opens a connection and waits until it answers.
 * @throws ZerofleetError `job_store_unavailable`
 */
export async function connectRedis(url: string, purpose: RedisPurpose, log?: Logger): Promise<Redis> {
  const redis = created({ ...redisOptions(url, purpose), lazyConnect: true }, log);
  try {
    await redis.connect();
    return redis;
  } catch (error) {
    redis.disconnect();
    throw redisError(error);
  }
}

function created(options: RedisOptions, log: Logger | undefined): Redis {
  const redis = new Redis(options);
  // Without a listener ioredis prints to the console; commands report their own failure to their callers.
  redis.on('error', (error: Error) => log?.warn({ err: error }, 'redis connection'));
  return redis;
}

/** Closes a connection, gracefully while it is up. Idempotent. */
export async function disconnectRedis(redis: Redis): Promise<void> {
  if (redis.status === 'ready') await redis.quit().catch(() => undefined);
  redis.disconnect();
}

/** Replies of a running server that cannot serve now, or refuses this client. */
const NOT_SERVING =
  /^(OOM|MISCONF|EXECABORT|READONLY|LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|NOAUTH|WRONGPASS|NOPERM)\b/;

/** Converts an error of ioredis; returns a typed one unchanged. */
export function redisError(error: unknown): ZerofleetError {
  if (error instanceof ZerofleetError) return error;
  const { name, message } = error as Error;
  const failed = name === 'ReplyError' && !NOT_SERVING.test(message);
  return failed
    ? new ZerofleetError('internal_error', `Redis refused a command: ${message}`, { cause: error })
    : new ZerofleetError('job_store_unavailable', `Redis is not available: ${message}`, { cause: error });
}

function address(url: string): RedisOptions {
  if (!URL.canParse(url)) throw invalid();
  const { protocol, hostname, port, username, password, pathname } = new URL(url);
  const login = {
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
  };
  if (protocol === 'unix:') return { path: decodeURIComponent(pathname), ...login };
  if (protocol !== 'redis:' && protocol !== 'rediss:') throw invalid();
  if (!/^\/?\d*$/.test(pathname)) throw invalid();
  return {
    host: hostname.replace(/^\[|\]$/g, '') || '127.0.0.1',
    port: Number(port || 6379),
    db: Number(pathname.slice(1) || 0),
    ...login,
    ...(protocol === 'rediss:' && { tls: {} }),
  };
}

function invalid(): ZerofleetError {
  // The value stays out of the message: it may hold a password.
  return new ZerofleetError(
    'invalid_configuration',
    'a Redis URL is redis://host:port/db, rediss://host:port/db or unix:///path/to/socket',
  );
}
