import { isIP, type Socket } from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import type { RedisNode } from '../config/redis-address.js';

/** Limit for a connection and for an answer. */
const LIMIT_MS = 1_000;

const CONNECTION: RedisOptions = {
  lazyConnect: true,
  connectTimeout: LIMIT_MS,
  commandTimeout: LIMIT_MS,
  socketTimeout: LIMIT_MS,
  retryStrategy: () => LIMIT_MS,
  // A sentinel that cannot be reached is not waited for.
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
};

/**
 * The sentinels of a primary. They promote one replica, and reconfigure the other replicas up to seconds later. If the
 * old primary returns in between, the other replicas still follow it: they confirm its writes, and lose them once they
 * follow the new primary. So a write counts only if no failover had begun, which the leading sentinel knows before the
 * promotion.
 */
export class Sentinels {
  private readonly connections: Redis[];
  private readonly opened: Promise<unknown>;

  /** @param primary name under which they watch it */
  constructor(
    nodes: readonly RedisNode[],
    private readonly primary: string,
    login: Pick<RedisOptions, 'password' | 'tls'>,
  ) {
    this.connections = nodes.map((node) => new Redis({ ...CONNECTION, ...node, ...login }));
    for (const connection of this.connections) connection.on('error', () => undefined);
    this.opened = Promise.allSettled(this.connections.map((connection) => connection.connect()));
  }

  /**
   * Resolves if the server of a connection is the primary, and no failover had begun before this call.
   * @throws Error also when most sentinels cannot be reached, or one of the others does not answer
   */
  async requirePrimary(connection: Pick<Socket, 'remoteAddress' | 'remotePort'>): Promise<void> {
    await this.opened;
    const reached = this.connections.filter(({ status }) => status === 'ready');
    if (2 * reached.length <= this.connections.length)
      throw new Error(`${reached.length} of ${this.connections.length} sentinels can be reached`);
    const answers = await Promise.all(reached.map((sentinel) => this.ask(sentinel)));
    for (const { ip = '', port, flags } of answers) {
      if (flags?.includes('failover_in_progress')) throw new Error('the sentinels are replacing the primary');
      if (Number(port) !== connection.remotePort || (isIP(ip) && ip !== connection.remoteAddress))
        throw new Error('the sentinels have replaced the primary');
    }
  }

  close(): void {
    for (const connection of this.connections) connection.disconnect();
  }

  private async ask(sentinel: Redis): Promise<Record<string, string | undefined>> {
    try {
      const fields = (await sentinel.call('SENTINEL', 'MASTER', this.primary)) as string[];
      return Object.fromEntries(fields.flatMap((name, i) => (i % 2 ? [] : [[name, fields[i + 1]]])));
    } catch (error) {
      throw new Error(`a sentinel does not answer: ${(error as Error).message}`, { cause: error });
    }
  }
}
