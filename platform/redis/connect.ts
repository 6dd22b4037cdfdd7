import { setTimeout as sleep } from 'node:timers/promises';
import { Redis, type RedisOptions } from 'ioredis';
import { ZerofleetError } from '../../contracts/index.js';
import { type RedisAddress, redisAddress } from '../config/redis-address.js';
import type { Logger } from '../logging/logging.js';
import { clusterConnector } from './cluster-connector.js';
import { ReplicatedRedis } from './replicated.js';
import { Sentinels } from './sentinels.js';

/**
 * Purpose of a connection, which decides its behaviour while Redis is unavailable:
 * - `commands`: each command fails within seconds, so that its caller can answer or retry; writes are acknowledged once
 *   the replicas have them that the URL asks for;
 * - `subscriber`: reconnects for ever, its owner renews the subscriptions;
 * - `queue`: as BullMQ needs it, commands wait until Redis is available.
 */
type RedisPurpose = 'commands' | 'subscriber' | 'queue';

const CONNECT_TIMEOUT_MS = 5_000;
const COMMAND_TIMEOUT_MS = 5_000;
/**
 * A connection without an answer for this time is opened again: its server may be cut off, and another one the primary.
 */
const SILENCE_MS = 5_000;
/** Longer than any blocking read. */
const BLOCKED_SILENCE_MS = 30_000;
/** A subscriber sends nothing else that a server could fail to answer. */
const PING_INTERVAL_MS = 10_000;
const MAX_RECONNECT_DELAY_MS = 1_000;

const BY_PURPOSE: Readonly<Record<RedisPurpose, RedisOptions>> = {
  commands: {
    commandTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: SILENCE_MS,
    maxRetriesPerRequest: 2,
    // A command whose reply was lost may have been executed. Its caller knows whether it may be repeated,
    // ioredis does not.
    autoResendUnfulfilledCommands: false,
  },
  subscriber: {
    commandTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: SILENCE_MS,
    maxRetriesPerRequest: null,
    autoResubscribe: false,
  },
  queue: { socketTimeout: BLOCKED_SILENCE_MS, maxRetriesPerRequest: null, enableReadyCheck: false },
};

/** Replies of a server that is not, or no longer, the primary. The command fails; the connection finds the primary. */
const NOT_PRIMARY = /^(READONLY|MASTERDOWN|MOVED|CLUSTERDOWN)\b/;

/**
 * Returns connection options for a Redis URL (platform/config/redis-address.ts).
 * @throws ZerofleetError `invalid_configuration`
 */
export function redisOptions(url: string, purpose: RedisPurpose): RedisOptions {
  return {
    ...serverOptions(redisAddress(url)),
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: (tries) => Math.min(50 * tries, MAX_RECONNECT_DELAY_MS),
    reconnectOnError: ({ message }) => (NOT_PRIMARY.test(message) ? 1 : false),
    ...BY_PURPOSE[purpose],
  };
}

function serverOptions({ server, login, db, tls }: RedisAddress): RedisOptions {
  const security = { ...login, ...(tls && { tls: {} }) };
  switch (server.kind) {
    case 'socket':
      return { path: server.path, ...security };
    case 'single':
      return { ...server.node, db, ...security };
    case 'cluster':
      return { Connector: clusterConnector(server.nodes, security), ...security };
    case 'sentinel':
      return {
        sentinels: server.nodes,
        name: server.primary,
        sentinelCommandTimeout: COMMAND_TIMEOUT_MS,
        ...(server.password && { sentinelPassword: server.password }),
        ...(tls && { sentinelTLS: {}, enableTLSForSentinelMode: true }),
        db,
        ...security,
      };
  }
}

/**
 * Opens a connection, which connects in the background and again whenever it is lost.
 * @throws ZerofleetError `invalid_configuration`
 */
export function openRedis(url: string, purpose: RedisPurpose, log?: Logger): Redis {
  return created(url, purpose, {}, log);
}

/**
 * Opens a connection and waits until it answers.
 * @throws ZerofleetError `job_store_unavailable`
 */
export async function connectRedis(url: string, purpose: RedisPurpose, log?: Logger): Promise<Redis> {
  const redis = created(url, purpose, { lazyConnect: true }, log);
  const ending = new AbortController();
  // Sentinels and nodes of a cluster are asked until one knows a primary.
  const late = sleep(CONNECT_TIMEOUT_MS, undefined, { signal: ending.signal }).then(() => {
    throw new Error(`no primary was found in ${CONNECT_TIMEOUT_MS / 1000} s`);
  });
  try {
    await Promise.race([redis.connect(), late]);
    return redis;
  } catch (error) {
    redis.disconnect();
    throw redisError(error);
  } finally {
    ending.abort();
    await late.catch(() => undefined);
  }
}

function created(url: string, purpose: RedisPurpose, more: RedisOptions, log: Logger | undefined): Redis {
  const options = { ...redisOptions(url, purpose), ...more };
  const address = redisAddress(url);
  const confirms = purpose === 'commands' && address.replicas > 0;
  const redis = confirms
    ? new ReplicatedRedis(options, address.replicas, sentinelsOf(address))
    : new Redis(options);
  if (purpose === 'subscriber') pingWhileConnected(redis);
  // Without a listener ioredis prints to the console; commands report their own failure to their callers.
  redis.on('error', (error: Error) => log?.warn({ err: error }, 'redis connection'));
  return redis;
}

function sentinelsOf({ server, tls }: RedisAddress): Sentinels | undefined {
  if (server.kind !== 'sentinel') return undefined;
  return new Sentinels(server.nodes, server.primary, { password: server.password, ...(tls && { tls: {} }) });
}

function pingWhileConnected(redis: Redis): void {
  let timer: NodeJS.Timeout | undefined;
  redis.on('ready', () => {
    // A failure is that of the connection, which is opened again.
    timer = setInterval(() => void redis.ping().catch(() => undefined), PING_INTERVAL_MS);
  });
  redis.on('close', () => clearInterval(timer));
}

/** Closes a connection, gracefully while it is up. Idempotent. */
export async function disconnectRedis(redis: Redis): Promise<void> {
  if (redis.status === 'ready') await redis.quit().catch(() => undefined);
  redis.disconnect();
}

/** Replies of a running server that cannot serve now, or refuses this client. */
const NOT_SERVING =
  /^(MISCONF|EXECABORT|READONLY|LOADING|BUSY|MASTERDOWN|MOVED|ASK|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|NOAUTH|WRONGPASS|NOPERM)\b/;

/** Converts an error of ioredis; returns a typed one unchanged. */
export function redisError(error: unknown): ZerofleetError {
  if (error instanceof ZerofleetError) return error;
  const { name, message } = error as Error;
  if (name === 'ReplyError' && message.startsWith('OOM'))
    return new ZerofleetError('redis_full', `Redis refuses new records: ${message}`, { cause: error });
  const failed = name === 'ReplyError' && !NOT_SERVING.test(message);
  return failed
    ? new ZerofleetError('internal_error', `Redis refused a command: ${message}`, { cause: error })
    : new ZerofleetError('job_store_unavailable', `Redis is not available: ${message}`, { cause: error });
}
