import { type ConnectionOptions, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { type QueuePayload, queueJobId, queueName, REDIS_PREFIX } from '../../contracts/index.js';
import type { OutboxEntry } from '../job-store/outbox-port.js';
import type { Logger } from '../logging.js';
import { connectRedis, disconnectRedis } from '../redis/connect.js';

/** How long BullMQ remembers entries that are done: within this time a second delivery is no second entry. */
const REMEMBER_SECONDS = 3600;

/**
 * Hands outbox entries to BullMQ: each worker has a queue, and all of them share a connection. The job id of an entry is its attempt's,
 * so delivering an entry twice adds one; and should one come after BullMQ has forgotten it, the worker's claim is refused by the job
 * store.
 */
export class WorkerQueues {
  readonly #queues = new Map<string, Queue<QueuePayload>>();

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
    await this.#queueOf(worker_id).add('attempt', payload, {
      jobId: queueJobId(payload),
      removeOnComplete: { age: REMEMBER_SECONDS },
      // Whatever became of an entry: an allocation that is not claimed goes back to the scheduler.
      removeOnFail: true,
    });
  }

  /** Removes the queue of a worker that is gone. */
  async remove(workerId: string): Promise<void> {
    await this.#queueOf(workerId).obliterate({ force: true });
    await this.#queues.get(workerId)?.close();
    this.#queues.delete(workerId);
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    this.#queues.clear();
    await disconnectRedis(this.redis);
  }

  #queueOf(worker: string): Queue<QueuePayload> {
    const known = this.#queues.get(worker);
    if (known) return known;
    const queue = new Queue<QueuePayload>(queueName(worker), {
      // BullMQ declares an older edition of the type.
      connection: this.redis as unknown as ConnectionOptions,
      prefix: REDIS_PREFIX,
    });
    // Without a listener an error event would end the process; deliveries report their own failure.
    queue.on('error', (error) => this.log.warn({ err: error, worker }, 'queue connection'));
    this.#queues.set(worker, queue);
    return queue;
  }
}
