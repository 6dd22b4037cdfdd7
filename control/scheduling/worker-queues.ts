import { type ConnectionOptions, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { type QueuePayload, queueJobId, queueName, REDIS_PREFIX } from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import { connectRedis, disconnectRedis } from '../../platform/redis/connect.js';
import type { OutboxEntry } from '../../state/index.js';

/** Of BullMQ's own events, which nobody reads. */
const EVENTS_KEPT = 0;

/**
 * Hands outbox entries to BullMQ: each worker has a queue, and all of them share a connection. Nothing is kept of a queue between two
 * deliveries, so a worker that is gone leaves nothing in any process. The job id of an entry is its attempt's, so delivering an entry
 * twice adds one; and should one come after the first was done, the worker's claim is refused by the job store.
 */
export class WorkerQueues {
  private constructor(
    private readonly redis: Redis,
    private readonly log: Pick<Logger, 'warn'>,
  ) {}

  /** @throws ZerofleetError `job_store_unavailable` */
  static async open(redisUrl: string, log: Logger): Promise<WorkerQueues> {
    return new WorkerQueues(await connectRedis(redisUrl, 'commands', log), log);
  }

  /** @throws when Redis does not answer; the outbox keeps the entry, and the relay comes back with it */
  async deliver({ job_id, attempt, worker_id, trace }: OutboxEntry): Promise<void> {
    const payload: QueuePayload = { job_id, attempt, ...(trace && { trace }) };
    await this.#use(worker_id, (queue) =>
      queue.add('attempt', payload, {
        jobId: queueJobId(payload),
        removeOnComplete: true,
        // Whatever became of an entry: an allocation that is not claimed goes back to the scheduler.
        removeOnFail: true,
      }),
    );
  }

  /** Removes the queue of a worker that is gone. */
  async remove(workerId: string): Promise<void> {
    await this.#use(workerId, (queue) => queue.obliterate({ force: true }));
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await disconnectRedis(this.redis);
  }

  async #use(worker: string, work: (queue: Queue<QueuePayload>) => Promise<unknown>): Promise<void> {
    const queue = new Queue<QueuePayload>(queueName(worker), {
      // BullMQ declares an older edition of the type.
      connection: this.redis as unknown as ConnectionOptions,
      prefix: REDIS_PREFIX,
      // It would ask the server for its version each time.
      skipVersionCheck: true,
      streams: { events: { maxLen: EVENTS_KEPT } },
    });
    // Without a listener an error event would end the process; deliveries report their own failure.
    queue.on('error', (error) => this.log.warn({ err: error, worker }, 'queue connection'));
    try {
      await work(queue);
    } finally {
      await queue.close();
    }
  }
}
