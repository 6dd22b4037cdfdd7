import { connect as connectTcp } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, Redis, type RedisOptions } from 'ioredis';
import { REDIS_PREFIX } from '../../contracts/index.js';
import type { RedisNode } from '../config/redis-address.js';

/** Limit for each step of asking a node. */
const ASK_MS = 1_000;
const DISCONNECT_MS = 2_000;
const [RETRY_MS, MAX_RETRY_MS] = [50, 1_000];

type ErrorEmitter = Parameters<AbstractConnector['connect']>[0];

/**
 * Makes ioredis connect to the primary of one slot of a Redis Cluster, anew after each loss of the connection. All keys
 * of the programs have the hash tag of `REDIS_PREFIX`, so that slot has all of them, and a command may use any of them
 * together.
 * @param seeds nodes of the cluster; the others become known
 * @param login options with which every node accepts this program
 */
export function clusterConnector(
  seeds: readonly RedisNode[],
  login: Pick<RedisOptions, 'username' | 'password' | 'tls'>,
): new () => AbstractConnector {
  return class ClusterConnector extends AbstractConnector {
    private nodes = seeds;

    constructor() {
      super(DISCONNECT_MS);
    }

    /** Tries until there is a primary: ioredis gives up a connection whose connector fails. */
    override async connect(emit: ErrorEmitter) {
      this.connecting = true;
      let primary: RedisNode | null = null;
      for (let tries = 1; primary === null; tries += 1) {
        primary = await this.findPrimary().catch((error: Error) => {
          if (this.connecting) emit('error', error);
          return null;
        });
        if (primary === null) await sleep(Math.min(RETRY_MS * tries, MAX_RETRY_MS));
        // disconnect() was called meanwhile.
        if (!this.connecting) throw new Error('Connection is closed.');
      }
      this.stream = login.tls ? connectTls({ ...primary, ...login.tls }) : connectTcp(primary);
      this.stream.once('error', (error: Error) => {
        this.firstError = error;
      });
      return this.stream;
    }

    /** ioredis calls this for each command that was refused (MOVED), and each call would add a listener. */
    override disconnect(): void {
      if (this.stream?.writableEnded) this.connecting = false;
      else super.disconnect();
    }

    private async findPrimary(): Promise<RedisNode> {
      let failure: unknown;
      for (const node of this.nodes) {
        try {
          const [primary, ...others] = await nodesOfSlot(node, login);
          if (!primary) throw new Error(`no node of the cluster serves the keys ${REDIS_PREFIX}*`);
          // A connection is opened again when its primary is lost, so the other nodes are asked first.
          this.nodes = distinct([...others, primary, ...seeds]);
          return primary;
        } catch (error) {
          failure = error;
        }
      }
      throw failure;
    }
  };
}

/**
 * Asks a node for the nodes that have the slot of `REDIS_PREFIX`, and for all others. @returns the primary first; none:
 * the slot is not served
 */
async function nodesOfSlot(node: RedisNode, login: RedisOptions): Promise<RedisNode[]> {
  const redis = new Redis({
    ...node,
    ...login,
    lazyConnect: true,
    enableReadyCheck: false,
    connectTimeout: ASK_MS,
    commandTimeout: ASK_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    const slot = Number(await redis.cluster('KEYSLOT', REDIS_PREFIX));
    // For each range of slots its primary, then its replicas. A node without a host is the one that was asked.
    const ranges = await redis.cluster('SLOTS');
    const nodesOf = ([, , ...nodes]: (typeof ranges)[number]) =>
      nodes.map(([host, port]): RedisNode => ({ host: host || node.host, port }));
    const serving = ranges.find(([first, last]) => first <= slot && slot <= last);
    return serving ? [...nodesOf(serving), ...ranges.flatMap(nodesOf)] : [];
  } finally {
    redis.disconnect();
  }
}

function distinct(nodes: readonly RedisNode[]): RedisNode[] {
  return [...new Map(nodes.map((node) => [`${node.host} ${node.port}`, node])).values()];
}
