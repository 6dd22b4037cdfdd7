import { type ConnectionOptions, Queue } from 'bullmq';
import { type QueuePayload, queueJobId, queueName, REDIS_PREFIX } from '../../contracts/index.js';
import type { OutboxEntry } from '../../platform/job-store/outbox-port.js';
import type { Logger } from '../../platform/logging.js';
import { redisOptions } from '../../platform/redis/connect.js';
import { PerPool } from './per-pool.js';

/** How long BullMQ remembers entries that are done: within this time a second delivery is no second entry. */
const REMEMBER_SECONDS = 3600;

/**
 * Hands outbox entries to BullMQ, one queue for each pool. The job id of an entry is its attempt's, so delivering an entry
 * twice adds one; and should one come after BullMQ has forgotten it, the worker's claim is refused by the job store.
 */
export class QueueDelivery {
  readonly #queues: PerPool<Queue<QueuePayload>>;

  constructor(redisUrl: string, log: Logger) {
    const open = (pool: string) => {
      const queue = new Queue<QueuePayload>(queueName(pool), {
        // The same options; BullMQ declares an older edition of their type.
        connection: redisOptions(redisUrl, 'commands') as ConnectionOptions,
        prefix: REDIS_PREFIX,
      });
      // Without a listener an error event would end the process; deliveries report their own failure.
      queue.on('error', (error) => log.warn({ err: error, pool }, 'queue connection'));
      return queue;
    };
    this.#queues = new PerPool({ open, close: (queue) => queue.close() });
  }

  /** @throws when Redis does not answer; the outbox keeps the entry, and the relay comes back with it */
  async deliver({ job_id, attempt, pool, delay_ms, trace }: OutboxEntry): Promise<void> {
    const payload: QueuePayload = { job_id, attempt, ...(trace && { trace }) };
    const options = {
      jobId: queueJobId(payload),
      delay: delay_ms,
      removeOnComplete: { age: REMEMBER_SECONDS },
      // An agent queues the job of a failed entry anew, and removes the entry then.
      removeOnFail: false,
    };
    await this.#queues.use(pool, (queue) => queue.add('attempt', payload, options));
  }

  /** Closes the connections. Idempotent. */
  async close(): Promise<void> {
    await this.#queues.close();
  }
}
