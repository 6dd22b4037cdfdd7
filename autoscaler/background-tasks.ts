import { type ConnectionOptions, Queue } from 'bullmq';
import { exportQueueName, REDIS_PREFIX } from '../contracts/index.js';
import type { Logger } from '../platform/logging/logging.js';
import { redisOptions } from '../platform/redis/connect.js';
import type { SampleRequests } from '../state/index.js';

/** Counts the samples and exports that a pool was asked for, which need an agent but no ranks. */
export class BackgroundTasks {
  private readonly queues = new Map<string, Queue>();

  constructor(
    private readonly store: Pick<SampleRequests, 'countSamples'>,
    private readonly redisUrl: string,
    private readonly log: Logger,
  ) {}

  async count(pool: string): Promise<number> {
    const [samples, exports] = await Promise.all([
      this.store.countSamples(pool),
      this.queue(exportQueueName(pool)).getJobCountByTypes('waiting', 'active'),
    ]);
    return samples.waiting + samples.taken + exports;
  }

  /** Closes the connections. Idempotent. */
  async close(): Promise<void> {
    await Promise.all([...this.queues.values()].map((queue) => queue.close()));
  }

  private queue(name: string): Queue {
    const known = this.queues.get(name);
    if (known) return known;
    const queue = new Queue(name, {
      connection: redisOptions(this.redisUrl, 'commands') as ConnectionOptions,
      prefix: REDIS_PREFIX,
      // The API configures how many events of the queue are kept.
      skipMetasUpdate: true,
    });
    queue.on('error', (error) => this.log.warn({ err: error }, 'queue'));
    this.queues.set(name, queue);
    return queue;
  }
}
