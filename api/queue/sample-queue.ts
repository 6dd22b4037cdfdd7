import { type ConnectionOptions, Queue, QueueEvents } from 'bullmq';
import {
  REDIS_PREFIX,
  type SamplePayload,
  type SampleReply,
  sampleQueueName,
  ZerofleetError,
} from '../../contracts/index.js';
import type { Logger } from '../../platform/logging.js';
import { redisOptions } from '../../platform/redis/connect.js';
import type { SamplePort } from '../services.js';

/** How long BullMQ keeps an entry that is done: the reply is read at once. */
const REMEMBER_SECONDS = 60;

interface Channel {
  queue: Queue<SamplePayload, SampleReply>;
  events: QueueEvents;
}

/** Calls the workers of a pool through BullMQ: an entry goes out, its return value is the reply. */
export class SampleQueue implements SamplePort {
  readonly #channels = new Map<string, Channel>();
  readonly #redisUrl: string;
  readonly #log: Logger;

  constructor(redisUrl: string, log: Logger) {
    this.#redisUrl = redisUrl;
    this.#log = log;
  }

  async sample(pool: string, payload: SamplePayload): Promise<SampleReply> {
    const { queue, events } = this.#channel(pool);
    const entry = await queue
      .add('sample', payload, {
        removeOnComplete: { age: REMEMBER_SECONDS },
        removeOnFail: { age: REMEMBER_SECONDS },
      })
      .catch((error: unknown) => {
        throw new ZerofleetError('job_store_unavailable', 'the queue does not answer', { cause: error });
      });
    try {
      return await entry.waitUntilFinished(events, Math.max(1, payload.expires_at - Date.now()));
    } catch (error) {
      this.#log.warn({ err: error, pool, checkpoint: payload.checkpoint.id }, 'sample not answered');
      // One that a worker has in hand cannot be removed; its answer is dropped.
      await entry.remove().catch(() => undefined);
      throw new ZerofleetError(
        'sample_timeout',
        `no worker of pool ${pool} answered in time; ask for fewer tokens, or see that the pool has a worker`,
      );
    }
  }

  /** Closes the connections. Idempotent. */
  async close(): Promise<void> {
    const channels = [...this.#channels.values()];
    await Promise.all(channels.flatMap(({ queue, events }) => [queue.close(), events.close()]));
  }

  #channel(pool: string): Channel {
    const known = this.#channels.get(pool);
    if (known !== undefined) return known;
    const connection = (purpose: 'commands' | 'queue') => ({
      connection: redisOptions(this.#redisUrl, purpose) as ConnectionOptions,
      prefix: REDIS_PREFIX,
    });
    const name = sampleQueueName(pool);
    const channel: Channel = {
      queue: new Queue(name, connection('commands')),
      events: new QueueEvents(name, connection('queue')),
    };
    // Without a listener an error event would end the process; calls report their own failure.
    for (const part of Object.values(channel) as Queue[]) {
      part.on('error', (error) => this.#log.warn({ err: error, pool }, 'sample queue connection'));
    }
    this.#channels.set(pool, channel);
    return channel;
  }
}
