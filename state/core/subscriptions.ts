import type { Redis } from 'ioredis';
import { redisError } from '../../platform/redis/connect.js';

/** Called with each message of a channel, and with null when messages may have been missed. */
type Wake = (message: string | null) => void;

/**
 * Multiplexes any number of listeners on one subscriber connection. A message is only a hint to read again. After a
 * reconnect every listener is called as soon as its channel is subscribed again, so a lost message does no harm.
 */
export class Subscriptions {
  private readonly listeners = new Map<string, Set<Wake>>();

  /** @param redis a dedicated `subscriber` connection; its owner closes it */
  constructor(private readonly redis: Redis) {
    redis.on('message', (channel: string, message: string) => this.wake(channel, message));
    redis.on('ready', () => void this.renew());
  }

  /** Resolves when the subscription is active: later messages are not missed. */
  async add(channel: string, wake: Wake): Promise<Unsubscribe> {
    const listeners = this.listeners.get(channel) ?? new Set();
    this.listeners.set(channel, listeners);
    listeners.add(wake);
    try {
      await this.redis.subscribe(channel);
    } catch (error) {
      await this.remove(channel, wake);
      throw redisError(error);
    }
    return () => this.remove(channel, wake);
  }

  private async remove(channel: string, wake: Wake): Promise<void> {
    const listeners = this.listeners.get(channel);
    if (!listeners?.delete(wake) || listeners.size > 0) return;
    this.listeners.delete(channel);
    // Redis keeps the order of commands, so a later subscribe to the same channel is not undone. A broken connection
    // has no subscription to end.
    await this.redis.unsubscribe(channel).catch(() => undefined);
  }

  private async renew(): Promise<void> {
    const channels = [...this.listeners.keys()];
    if (channels.length === 0) return;
    try {
      await this.redis.subscribe(...channels);
    } catch {
      // The connection broke again; the next 'ready' event retries.
      return;
    }
    for (const channel of channels) this.wake(channel, null);
  }

  private wake(channel: string, message: string | null): void {
    for (const wake of [...(this.listeners.get(channel) ?? [])]) wake(message);
  }
}

/** Ends a subscription; resolves when no more callbacks will come. Idempotent. */
export type Unsubscribe = () => Promise<void>;
