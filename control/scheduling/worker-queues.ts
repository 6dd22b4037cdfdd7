import { type ConnectionOptions, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { type QueuePayload, queueJobId, queueName, REDIS_PREFIX } from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import { disconnectRedis, openRedis } from '../../platform/redis/connect.js';
import type { OutboxEntry } from '../../state/index.js';

/** Number of BullMQ's own events to keep. They have no reader. */
const EVENTS_KEPT = 0;

/**
 * Delivers outbox entries to BullMQ: each worker has a queue, and all share a connection. No queue is kept
 * between deliveries, so a worker that is gone leaves nothing in any process. The job id of an entry is that
 * of its attempt, so a repeated delivery adds nothing. If the repeated delivery comes after the first was
 * processed, the job store refuses the worker's claim.
 */
export class WorkerQueues {
  private readonly redis: Redis;

  constructor(
    redisUrl: string,
    private readonly log: Logger,
  ) {
    this.redis = openRedis(redisUrl, 'commands', log);
  }

  /** @throws when Redis does not answer; the entry stays in the outbox and the relay retries it */
  async deliver({ job_id, attempt, worker_id, trace }: OutboxEntry): Promise<void> {
    const payload: QueuePayload = { job_id, attempt, ...(trace && { trace }) };
    await this.use(worker_id, (queue) =>
      queue.add('attempt', payload, {
        jobId: queueJobId(payload),
        removeOnComplete: true,
        // A failed entry need not be kept: an unclaimed allocation returns to the scheduler.
        removeOnFail: true,
      }),
    );
  }

  /** Removes the queue of a worker that is gone. */
  async remove(workerId: string): Promise<void> {
    await this.use(workerId, (queue) => queue.obliterate({ force: true }));
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await disconnectRedis(this.redis);
  }

  private async use(worker: string, work: (queue: Queue<QueuePayload>) => Promise<unknown>): Promise<void> {
    const queue = new Queue<QueuePayload>(queueName(worker), {
      // BullMQ declares an older version of the type.
      connection: this.redis as unknown as ConnectionOptions,
      prefix: REDIS_PREFIX,
      // Otherwise BullMQ asks the server for its version each time.
      skipVersionCheck: true,
      streams: { events: { maxLen: EVENTS_KEPT } },
    });
    // Without a listener an error event would end the process; deliveries report their own failures.
    queue.on('error', (error) => this.log.warn({ err: error, worker }, 'queue connection'));
    try {
      await work(queue);
    } finally {
      await queue.close();
    }
  }
}
