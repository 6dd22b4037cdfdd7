import { type ConnectionOptions, Queue, QueueEvents } from 'bullmq';
import {
  type Checkpoint,
  REDIS_PREFIX,
  type SamplePayload,
  type SampleReply,
  sampleQueueName,
} from '../../contracts/index.js';
import { redisOptions } from '../../platform/redis/connect.js';
import { SAMPLE_TASK } from '../../platform/testing/sample-task.js';
import type { Fleet } from './fleet.js';

const REQUEST = { ...SAMPLE_TASK, max_tokens: 64 };

/** A checkpoint, or an uploaded model. */
type SampleOf = Checkpoint | { model_id: string };

/** Asks a fleet's workers for samples, as the API does. */
export class SampleClient {
  private readonly queue: Queue<SamplePayload, SampleReply>;
  private readonly events: QueueEvents;

  constructor(private readonly fleet: Fleet) {
    const bullmq = {
      connection: redisOptions(fleet.redis.url, 'queue') as ConnectionOptions,
      prefix: REDIS_PREFIX,
    };
    this.queue = new Queue(sampleQueueName('default'), bullmq);
    this.events = new QueueEvents(sampleQueueName('default'), bullmq);
  }

  /** @param wait_ms time until the request expires */
  async ask(
    of: SampleOf,
    request: Partial<SamplePayload['request']> = {},
    wait_ms = 240_000,
  ): Promise<SampleReply> {
    const entry = await this.add(of, request, wait_ms);
    return entry.waitUntilFinished(this.events, 240_000);
  }

  /** Adds a request and does not wait for its answer. */
  async add(of: SampleOf, request: Partial<SamplePayload['request']> = {}, wait_ms = 240_000) {
    return this.queue.add('sample', {
      source: 'model_id' in of ? of : { job_id: of.job_id, checkpoint: { id: of.id, prefix: of.prefix } },
      request: { ...REQUEST, ...request },
      stream: false,
      expires_at: (await this.fleet.store.now()) + wait_ms,
    });
  }

  /** Number of requests that no worker has taken. */
  waiting(): Promise<number> {
    return this.queue.getWaitingCount();
  }

  async close(): Promise<void> {
    await Promise.all([this.queue.close(), this.events.close()]);
  }
}
