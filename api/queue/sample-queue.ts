import { type ConnectionOptions, Queue, QueueEvents } from 'bullmq';
import {
  REDIS_PREFIX,
  type SamplePayload,
  type SampleReply,
  sampleQueueName,
  ZerofleetError,
} from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import { redisOptions } from '../../platform/redis/connect.js';
import type { SamplePort } from '../services.js';
import { PerPool } from './per-pool.js';

/** Retention of finished entries in BullMQ: replies are read immediately. */
const REMEMBER_SECONDS = 60;
/** Maximum length of the event stream that carries replies, including their texts; it is read immediately. */
const EVENTS_KEPT = 1_000;

interface Channel {
  queue: Queue<SamplePayload, SampleReply>;
  events: QueueEvents;
}

/** Calls the workers of a pool through BullMQ: an entry's return value is the reply. */
export class SampleQueue implements SamplePort {
  readonly #channels: PerPool<Channel>;
  readonly #log: Logger;

  constructor(redisUrl: string, log: Logger) {
    this.#channels = new PerPool({
      open: (pool) => openChannel(redisUrl, pool, log),
      close: ({ queue, events }) => Promise.all([queue.close(), events.close()]),
    });
    this.#log = log;
  }

  sample(pool: string, payload: SamplePayload, timeout_ms: number): Promise<SampleReply> {
    return this.#channels.use(pool, (channel) => this.#ask(pool, channel, payload, timeout_ms));
  }

  /** Closes the connections. Idempotent. */
  close(): Promise<void> {
    return this.#channels.close();
  }

  async #ask(
    pool: string,
    { queue, events }: Channel,
    payload: SamplePayload,
    timeout_ms: number,
  ): Promise<SampleReply> {
    const entry = await queue
      .add('sample', payload, {
        removeOnComplete: { age: REMEMBER_SECONDS },
        removeOnFail: { age: REMEMBER_SECONDS },
      })
      .catch((error: unknown) => {
        throw new ZerofleetError('job_store_unavailable', 'the queue does not answer', { cause: error });
      });
    try {
      return await entry.waitUntilFinished(events, timeout_ms);
    } catch (error) {
      this.#log.warn({ err: error, pool, checkpoint: payload.checkpoint.id }, 'sample not answered');
      // An entry that a worker processes cannot be removed; its answer is dropped.
      await entry.remove().catch(() => undefined);
      throw new ZerofleetError(
        'sample_timeout',
        `no worker of pool ${pool} answered in time; request fewer tokens, or check that the pool has a worker`,
      );
    }
  }
}

function openChannel(redisUrl: string, pool: string, log: Logger): Channel {
  const connection = (purpose: 'commands' | 'queue') => ({
    connection: redisOptions(redisUrl, purpose) as ConnectionOptions,
    prefix: REDIS_PREFIX,
  });
  const name = sampleQueueName(pool);
  const channel: Channel = {
    queue: new Queue(name, { ...connection('commands'), streams: { events: { maxLen: EVENTS_KEPT } } }),
    events: new QueueEvents(name, connection('queue')),
  };
  // Without a listener an error event would end the process; calls report their own failure.
  for (const part of Object.values(channel) as Queue[]) {
    part.on('error', (error) => log.warn({ err: error, pool }, 'sample queue connection'));
  }
  return channel;
}
