import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { REDIS_PREFIX } from '../../contracts/index.js';
import { connectRedis, disconnectRedis } from '../redis/connect.js';
import { freePort } from './free-port.js';
import { RedisProcess } from './redis-process.js';
import { untilDone } from './waiting.js';

/** A server without an answer for this time is down. */
const DOWN_MS = 1_000;
const SENTINELS = 3;
const REPLICAS = 2;
const SLOTS = 16_384;
const SHARDS = 3;

/**
 * A primary with two replicas, of which one takes over: under sentinels, or as a shard of a cluster. Servers do not
 * restart by themselves.
 */
export class FailoverRedis {
  private constructor(
    readonly url: string,
    readonly servers: readonly RedisProcess[],
    /** The sentinels, or the other shards. */
    readonly others: readonly RedisProcess[],
    private readonly root: string,
  ) {}

  /** Three sentinels watch three servers. */
  static async sentinel(): Promise<FailoverRedis> {
    const root = await makeRoot();
    const first = await RedisProcess.server(root);
    const replica = () => RedisProcess.server(root, { replicaof: `127.0.0.1 ${first.port}` });
    const servers = [first, ...(await times(REPLICAS, replica))];
    await Promise.all(servers.slice(1).map(untilInSync));
    const sentinel = () =>
      RedisProcess.sentinel(root, {
        sentinel: [
          `monitor zf 127.0.0.1 ${first.port} 2`,
          `down-after-milliseconds zf ${DOWN_MS}`,
          'failover-timeout zf 3000',
        ],
      });
    const sentinels = await times(SENTINELS, sentinel);
    await Promise.all(sentinels.map(untilSentinelKnowsAll));
    return new FailoverRedis(`redis+sentinel://${listOf(sentinels)}/zf`, servers, sentinels, root);
  }

  /** A cluster of three primaries; that of the programs' slot has the replicas. The URL names its first nodes. */
  static async cluster(): Promise<FailoverRedis> {
    const root = await makeRoot();
    const node = async () =>
      RedisProcess.server(root, {
        'cluster-enabled': 'yes',
        'cluster-port': await freePort(),
        'cluster-node-timeout': DOWN_MS,
        'cluster-replica-validity-factor': 0,
        'cluster-allow-replica-migration': 'no',
      });
    const shards = await times(SHARDS, node);
    const replicas = await times(REPLICAS, node);
    const first = await onServer(shards[0] as RedisProcess, (redis) => slotOf(redis));
    await meet([...shards, ...replicas]);
    const size = Math.ceil(SLOTS / SHARDS);
    for (const [n, shard] of shards.entries()) {
      const range = [n * size, Math.min((n + 1) * size, SLOTS) - 1] as const;
      await onServer(shard, (redis) => redis.cluster('ADDSLOTSRANGE', ...range));
    }
    const owner = shards[Math.floor(first / size)] as RedisProcess;
    const id = await onServer(owner, (redis) => redis.cluster('MYID'));
    await Promise.all(
      replicas.map((replica) =>
        untilDone(() => onServer(replica, (redis) => redis.cluster('REPLICATE', String(id)))),
      ),
    );
    await Promise.all(replicas.map(untilInSync));
    await Promise.all(shards.map(untilClusterServes));
    const servers = [owner, ...replicas];
    const others = shards.filter((shard) => shard !== owner);
    return new FailoverRedis(`redis+cluster://${listOf(shards)}`, servers, others, root);
  }

  /** The server that takes the programs' writes. Waits for one. */
  async primary(): Promise<RedisProcess> {
    return untilDone(() => this.onPrimary((_redis, primary) => primary));
  }

  /** The primary if it has all of its replicas. */
  async wholePrimary(): Promise<RedisProcess | null> {
    return this.onPrimary(async (redis, primary) =>
      (await redis.wait(REPLICAS, DOWN_MS)) === REPLICAS ? primary : null,
    ).catch(() => null);
  }

  private async onPrimary<T>(call: (redis: Redis, primary: RedisProcess) => T | Promise<T>): Promise<T> {
    const redis = await connectRedis(this.url, 'commands');
    try {
      await redis.set(`${REDIS_PREFIX}:primary-probe`, '1', 'PX', 1);
      const port = Number(/tcp_port:(\d+)/.exec(await redis.info('server'))?.[1]);
      return await call(redis, this.servers.find((server) => server.port === port) as RedisProcess);
    } finally {
      await disconnectRedis(redis);
    }
  }

  /** Kills everything, sentinels and other shards as well. @returns a function that starts it again */
  async killAll(): Promise<() => void> {
    const all = [...this.others, ...this.servers];
    await Promise.all(all.map((process) => process.kill()));
    return () => {
      for (const process of all) process.start();
    };
  }

  async stop(): Promise<void> {
    await this.killAll();
    await rm(this.root, { recursive: true, force: true });
  }
}

const makeRoot = () => mkdtemp(join(tmpdir(), 'zf-failover-'));
const listOf = (processes: readonly RedisProcess[]) =>
  processes.map(({ port }) => `127.0.0.1:${port}`).join();

async function times<T>(count: number, make: () => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  for (let n = 0; n < count; n += 1) made.push(await make());
  return made;
}

/** Calls a server once it answers. */
async function onServer<T>(server: RedisProcess, call: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = await untilDone(() => connectRedis(`redis://127.0.0.1:${server.port}`, 'commands'));
  try {
    return await call(redis);
  } finally {
    await disconnectRedis(redis);
  }
}

const slotOf = async (redis: Redis) => Number(await redis.cluster('KEYSLOT', REDIS_PREFIX));

/** Waits until a text that a server answers matches. */
async function untilMatch(
  server: RedisProcess,
  ask: (redis: Redis) => Promise<unknown>,
  pattern: RegExp,
): Promise<void> {
  await onServer(server, async (redis) => {
    while (!pattern.test(String(await ask(redis)))) await sleep(20);
  });
}

const untilInSync = (replica: RedisProcess) =>
  untilMatch(replica, (redis) => redis.info('replication'), /master_link_status:up/);

const untilSentinelKnowsAll = (sentinel: RedisProcess) =>
  untilMatch(
    sentinel,
    (redis) => redis.info('sentinel'),
    new RegExp(`slaves=${REPLICAS},sentinels=${SENTINELS}`),
  );

const untilClusterServes = (node: RedisProcess) =>
  untilMatch(node, (redis) => redis.cluster('INFO'), /cluster_state:ok/);

/** Makes each node known to all. */
async function meet([first, ...others]: readonly RedisProcess[]): Promise<void> {
  for (const other of others) {
    const bus = await onServer(other, (redis) => redis.config('GET', 'cluster-port'));
    await onServer(first as RedisProcess, (redis) =>
      redis.call('CLUSTER', 'MEET', '127.0.0.1', other.port, String((bus as string[])[1])),
    );
  }
  const known = new RegExp(`cluster_known_nodes:${others.length + 1}\\b`);
  for (const node of [first, ...others] as RedisProcess[])
    await untilMatch(node, (redis) => redis.cluster('INFO'), known);
}
