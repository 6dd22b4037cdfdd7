/** Redis of the fleet. Whoever is killed is restarted, as under a service manager. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type EmbeddedRedis, startEmbeddedRedis } from '../../platform/redis/embedded.js';
import { FailoverRedis } from '../../platform/testing/failover-redis.js';
import type { RedisProcess } from '../../platform/testing/redis-process.js';

export const REDIS_KINDS = ['private', 'sentinel', 'cluster'] as const;
export type RedisKind = (typeof REDIS_KINDS)[number];

export interface ChaosRedis {
  readonly url: string;
  /** Number of times that another server became the primary. */
  readonly failovers: number;
  /** Process id of the server that has the writes; undefined while it must not be disturbed. */
  victim(): Promise<number | undefined>;
  stop(): Promise<void>;
}

export async function startChaosRedis(kind: RedisKind, dir: string): Promise<ChaosRedis> {
  if (kind === 'private') return PrivateRedis.start(join(dir, 'redis'));
  return new ReplicatedRedis(await FailoverRedis[kind]());
}

const RESTART_MS = 200;

class PrivateRedis implements ChaosRedis {
  readonly failovers = 0;
  private ending = false;
  private readonly restarting: Promise<void>;

  private constructor(
    private server: EmbeddedRedis,
    private readonly start: () => Promise<EmbeddedRedis>,
  ) {
    this.restarting = this.keep();
  }

  static async start(dir: string): Promise<PrivateRedis> {
    // The machine itself never crashes here, so writes need no sync to survive.
    const start = () => startEmbeddedRedis({ dir, fsync: 'no' });
    return new PrivateRedis(await start(), start);
  }

  get url(): string {
    return this.server.url;
  }

  async victim(): Promise<number> {
    return this.server.pid;
  }

  async stop(): Promise<void> {
    this.ending = true;
    await this.server.stop();
    await this.restarting;
  }

  private async keep(): Promise<void> {
    for (;;) {
      await this.server.exited;
      if (this.ending) return;
      await sleep(RESTART_MS);
      this.server = await this.start();
    }
  }
}

/** Longer than a failover takes. */
const REPLACED_MS = 4_000;

class ReplicatedRedis implements ChaosRedis {
  failovers = 0;
  private primary: RedisProcess | undefined;
  private readonly ending = new AbortController();
  private readonly restarting: Promise<void>[];

  constructor(private readonly servers: FailoverRedis) {
    this.restarting = servers.servers.map((server) => this.keep(server));
  }

  get url(): string {
    return this.servers.url;
  }

  /**
   * With both replicas there, one of them has every acknowledged write: the loss of one server at a time is what they
   * are for.
   */
  async victim(): Promise<number | undefined> {
    const primary = await this.servers.wholePrimary();
    if (primary) this.note(primary);
    return primary?.pid;
  }

  async stop(): Promise<void> {
    this.note(await this.servers.primary());
    this.ending.abort();
    await this.servers.stop();
    await Promise.all(this.restarting);
  }

  private note(primary: RedisProcess): void {
    if (this.primary !== undefined && this.primary !== primary) this.failovers += 1;
    this.primary = primary;
  }

  private async keep(server: RedisProcess): Promise<void> {
    const { signal } = this.ending;
    for (;;) {
      await server.exited;
      await sleep(REPLACED_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      server.start();
    }
  }
}
