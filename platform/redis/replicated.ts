import { exists, hasFlag } from '@ioredis/commands';
import { Command, Redis, type RedisOptions } from 'ioredis';
import { REDIS_PREFIX } from '../../contracts/index.js';
import type { Sentinels } from './sentinels.js';

/** Limit for the replicas; until then the connection processes no other command. */
const WAIT_MS = 1_000;
/**
 * A write before each WAIT, which since Redis 7.2 covers only writes of its own connection. A reply may repeat another
 * connection's write, which no replica has yet. Works on a full server, which still deletes.
 */
const MARK = "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], '')";
/** Commands that run a program, which may write. */
const PROGRAMS = ['eval', 'evalsha', 'fcall'];

/**
 * Connection whose writes resolve once a number of replicas have them (`WAIT`,
 * https://redis.io/docs/latest/commands/wait). A failover to one of these replicas loses no acknowledged write. A write
 * that too few replicas got in time is rejected, and so is a write during a failover by sentinels (sentinels.ts). A
 * rejected write may still take effect, like one whose reply was lost.
 *
 * Writes whose replies arrive together share one WAIT. Pipelines and transactions do not wait.
 */
export class ReplicatedRedis extends Redis {
  private readonly seen = new WeakSet<Command>();
  private confirming: Promise<void> | undefined;
  /** Number of connections that were lost. */
  private losses = 0;

  constructor(
    options: RedisOptions,
    private readonly replicas: number,
    private readonly sentinels?: Sentinels,
  ) {
    super({ ...options, replyMapping: 'legacy' });
    this.on('close', () => {
      this.losses += 1;
    });
  }

  override sendCommand(...[command, stream]: Parameters<Redis['sendCommand']>): unknown {
    const reply = super.sendCommand(command, stream) as Promise<unknown>;
    // A command that had to wait for the connection passes a second time.
    if (stream || !mayWrite(command.name) || this.seen.has(command)) return reply;
    this.seen.add(command);
    return reply.then(async (value) => {
      // The reply has just arrived, so this is still its connection.
      const { losses } = this;
      await this.confirm();
      // Otherwise another server has answered, perhaps one without this write.
      if (this.losses !== losses) throw new Error('the connection was lost before a replica had the change');
      return value;
    });
  }

  override disconnect(reconnect = false): void {
    // While it is between two connections, `end` does not follow.
    if (!reconnect) this.sentinels?.close();
    super.disconnect(reconnect);
  }

  private confirm(): Promise<void> {
    this.confirming ??= Promise.resolve().then(async () => {
      this.confirming = undefined;
      const reached = await this.reached().catch((cause: Error) => {
        // For example because the server has become a replica.
        throw new Error(`it is not known whether a replica has the change: ${cause.message}`, { cause });
      });
      if (reached < this.replicas)
        throw new Error(`${reached} of ${this.replicas} replicas have the change after ${WAIT_MS} ms`);
      await this.sentinels?.requirePrimary(this.stream);
    });
    return this.confirming;
  }

  /** @returns the number of replicas that have all that was written */
  private async reached(): Promise<number> {
    const mark = new Command('eval', [MARK, '1', `${REDIS_PREFIX}:confirmed`]);
    this.seen.add(mark);
    const [, reached] = await Promise.all([this.sendCommand(mark), this.wait(this.replicas, WAIT_MS)]);
    return reached;
  }
}

function mayWrite(name: string): boolean {
  return PROGRAMS.includes(name) || (exists(name) && hasFlag(name, 'write'));
}
