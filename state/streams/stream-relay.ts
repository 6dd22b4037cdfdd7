/**
 * Takes what the job store's commands put into a stream to whoever has to have it. The stream has a consumer group: an entry
 * stays pending from the moment a relay read it until it was delivered and acknowledged, and one that stays pending for long
 * (its relay died, or the delivery failed) is given to whoever asks next. So every entry is delivered at least once, by any
 * number of relays; `deliver` makes that once.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { REDIS_PREFIX } from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import { connectRedis, disconnectRedis, redisError } from '../../platform/redis/connect.js';

const GROUP = 'relay';
// All relays share one name: a name of its own for each process would leave one behind with every restart.
const CONSUMER = 'relay';
export const BATCH = 50;
const DEFAULT_RETRY_AFTER_MS = 5_000;
const MAX_BLOCK_MS = 1_000;

export interface RelayOptions<T> {
  url: string;
  deliver: (entry: T) => Promise<void>;
  log: Logger;
  /**
   * How long an entry may stay unacknowledged before it is delivered again; longer than any delivery takes.
   */
  retryAfterMs?: number;
  prefix?: string;
}

/** Which stream, and what its entries say. */
export interface RelayedStream<T> {
  /** Its name after the prefix. */
  name: string;
  parse(fields: ReadonlyMap<string, string>, id: string): T;
  /** Entries that are delivered at once, begun in their order. */
  atOnce: number;
}

export interface StreamRelay {
  /** Ends after the delivery that is under way. Idempotent. */
  stop(): Promise<void>;
}

/** `[id, [field, value, …]]`, or null fields for an entry that was deleted. */
type RawEntry = [id: string, fields: string[] | null];

/**
 * Starts a relay on connections of its own, which outlast the absence of Redis.
 * @throws ZerofleetError `job_store_unavailable` when Redis is not there at the start
 */
export async function startStreamRelay<T>(
  stream: RelayedStream<T>,
  options: RelayOptions<T>,
): Promise<StreamRelay> {
  const redis = await connectRedis(options.url, 'commands', options.log);
  const reader = await connectRedis(options.url, 'queue', options.log).catch(async (error) => {
    await disconnectRedis(redis);
    throw error;
  });
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
  private readonly key: string;
  private readonly retryAfterMs: number;

  private readonly redis: Redis;
  private readonly reader: Redis;

  /**
   * @param connections `redis` for commands that answer at once, `reader` for the read that waits for entries
   */
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
    // The only way to end a blocking read at once; a delivery that is under way can still be acknowledged.
    this.reader.disconnect();
  }

  async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        const due = [...(await this.overdue()), ...(await this.fresh())];
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

  /** Delivers them at once and acknowledges them together: each costs Redis a sync of its disk, which they share then. */
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

  /** False when it has to come again. */
  private async deliver([id, fields]: RawEntry): Promise<boolean> {
    if (!fields) return true;
    const named = fieldsOf(fields);
    try {
      await this.options.deliver(this.stream.parse(named, id));
      return true;
    } catch (error) {
      // Stays pending: it is overdue after `retryAfterMs` and comes again, and holds up nobody until then.
      const entry = { stream: this.stream.name, entry: id, job_id: named.get('job_id') };
      this.options.log.warn({ err: error, ...entry }, 'outbox entry not delivered, will be tried again');
      return false;
    }
  }

  private async recover(error: Error): Promise<void> {
    if (error.message.startsWith('NOGROUP')) {
      // From the very first entry: what was written before the group existed is due as well.
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
