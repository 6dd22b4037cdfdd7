/**
 * Delivers the entries of a stream that the job store's commands write. The stream has a consumer group: an entry stays
 * pending from the read until it is delivered and acknowledged. An entry that stays pending too long (its relay died,
 * or the delivery failed) is claimed by the next relay that reads. So any number of relays deliver every entry at least
 * once; `deliver` discards duplicates.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { REDIS_PREFIX } from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import { disconnectRedis, openRedis, redisError } from '../../platform/redis/connect.js';

const GROUP = 'relay';
// All relays share one consumer name: a name per process would leave one behind with every restart.
const CONSUMER = 'relay';
export const BATCH = 50;
const DEFAULT_RETRY_AFTER_MS = 5_000;
const MAX_BLOCK_MS = 1_000;

export interface RelayOptions<T> {
  url: string;
  deliver: (entry: T) => Promise<void>;
  log: Logger;
  /** Time after which an unacknowledged entry is delivered again; longer than any delivery takes. */
  retryAfterMs?: number;
  prefix?: string;
}

/** A stream and the parser of its entries. */
export interface RelayedStream<T> {
  /** Name of the stream after the prefix. */
  name: string;
  parse(fields: ReadonlyMap<string, string>, id: string): T;
  /** Maximum number of concurrent deliveries, begun in order. */
  atOnce: number;
}

export interface StreamRelay {
  /** Stops after the delivery in progress. Idempotent. */
  stop(): Promise<void>;
}

/** `[id, [field, value, …]]`, or null fields for an entry that was deleted. */
type RawEntry = [id: string, fields: string[] | null];

/** Starts a relay on its own connections. Redis may be away, also at the start. */
export function startStreamRelay<T>(stream: RelayedStream<T>, options: RelayOptions<T>): StreamRelay {
  const redis = openRedis(options.url, 'commands', options.log);
  const reader = openRedis(options.url, 'queue', options.log);
  const relay = new Relay({ redis, reader }, stream, options);
  const running = relay.run();
  return {
    async stop() {
      relay.stop();
      await running;
      await disconnectRedis(redis);
    },
  };
}

class Relay<T> {
  private readonly stopping = new AbortController();
  /** A read whose connection is being opened again would not end with disconnect(). */
  private readonly stopped = new Promise<RawEntry[]>((resolve) =>
    this.stopping.signal.addEventListener('abort', () => resolve([]), { once: true }),
  );
  private readonly key: string;
  private readonly retryAfterMs: number;

  private readonly redis: Redis;
  private readonly reader: Redis;

  /** @param connections `redis` for commands that return at once, `reader` for the blocking read */
  constructor(
    connections: { redis: Redis; reader: Redis },
    private readonly stream: RelayedStream<T>,
    private readonly options: RelayOptions<T>,
  ) {
    this.redis = connections.redis;
    this.reader = connections.reader;
    this.key = `${options.prefix ?? REDIS_PREFIX}:${stream.name}`;
    this.retryAfterMs = options.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS;
  }

  stop(): void {
    this.stopping.abort();
    // Disconnecting is the only way to end a blocking read at once; a delivery in progress can still be acknowledged.
    this.reader.disconnect();
  }

  async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        const due = [...(await this.overdue()), ...(await Promise.race([this.fresh(), this.stopped]))];
        for (let at = 0; at < due.length && !signal.aborted; at += this.stream.atOnce)
          await this.handOver(due.slice(at, at + this.stream.atOnce));
      } catch (error) {
        if (signal.aborted) return;
        await this.recover(error as Error);
      }
    }
  }

  private async overdue(): Promise<RawEntry[]> {
    const reply = (await this.redis.xautoclaim(
      this.key,
      GROUP,
      CONSUMER,
      this.retryAfterMs,
      '0-0',
      'COUNT',
      BATCH,
    )) as [string, RawEntry[]];
    return reply[1];
  }

  private async fresh(): Promise<RawEntry[]> {
    const block = Math.min(MAX_BLOCK_MS, this.retryAfterMs);
    const reply = (await this.reader.xreadgroup(
      'GROUP',
      GROUP,
      CONSUMER,
      'COUNT',
      BATCH,
      'BLOCK',
      block,
      'STREAMS',
      this.key,
      '>',
    )) as [string, RawEntry[]][] | null;
    return reply?.[0]?.[1] ?? [];
  }

  /**
   * Delivers entries concurrently and acknowledges them together: each command costs Redis a sync of its disk, which
   * they share.
   */
  private async handOver(entries: readonly RawEntry[]): Promise<void> {
    const ends = await Promise.all(
      entries.map(async (entry) => ((await this.deliver(entry)) ? [entry[0]] : [])),
    );
    const ids = ends.flat();
    if (ids.length === 0) return;
    await this.redis
      .multi()
      .xack(this.key, GROUP, ...ids)
      .xdel(this.key, ...ids)
      .exec();
  }

  /** Returns false when the entry must be delivered again. */
  private async deliver([id, fields]: RawEntry): Promise<boolean> {
    if (!fields) return true;
    const named = fieldsOf(fields);
    try {
      await this.options.deliver(this.stream.parse(named, id));
      return true;
    } catch (error) {
      // The entry stays pending and is delivered again after `retryAfterMs`, without blocking other entries.
      const entry = { stream: this.stream.name, entry: id, job_id: named.get('job_id') };
      this.options.log.warn({ err: error, ...entry }, 'outbox entry not delivered, will be tried again');
      return false;
    }
  }

  private async recover(error: Error): Promise<void> {
    if (error.message.startsWith('NOGROUP')) {
      // The group starts at the first entry: entries written before it existed are due as well.
      await this.redis.xgroup('CREATE', this.key, GROUP, '0', 'MKSTREAM').catch(() => undefined);
      return;
    }
    const err = redisError(error);
    this.options.log.warn({ err, stream: this.stream.name }, 'outbox not read, will be tried again');
    await sleep(MAX_BLOCK_MS, undefined, { signal: this.stopping.signal }).catch(() => undefined);
  }
}

function fieldsOf(flat: readonly string[]): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) fields.set(flat[i] as string, flat[i + 1] as string);
  return fields;
}
