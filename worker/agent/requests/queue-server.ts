import { type ConnectionOptions, type Job as QueueJob, Worker, type WorkerOptions } from 'bullmq';
import { REDIS_PREFIX, ZerofleetError } from '../../../contracts/index.js';
import { redisOptions } from '../../../platform/redis/connect.js';
import type { AgentDeps } from '../attempt/context.js';

export interface QueueServerOptions extends AgentDeps {
  redis_url: string;
  pool: string;
}

/** Handles the entries of a queue of the pool, one at a time unless `more` says otherwise. */
export abstract class QueueServer<Payload, Reply> {
  /** Aborted by `close`. */
  protected readonly closing = new AbortController();
  private readonly worker: Worker<Payload, Reply>;

  constructor(
    protected readonly options: QueueServerOptions,
    queue: string,
    more: Partial<WorkerOptions> = {},
  ) {
    this.worker = new Worker<Payload, Reply>(queue, (entry, token) => this.handle(entry, token), {
      connection: redisOptions(options.redis_url, 'queue') as ConnectionOptions,
      prefix: REDIS_PREFIX,
      ...more,
    });
    this.worker.on('error', (error) => options.log.warn({ err: error, queue }, 'queue of tasks'));
  }

  /** @param token of the entry's lock */
  protected abstract handle(entry: QueueJob<Payload>, token?: string): Promise<Reply>;

  /** Resolves when the server takes entries. */
  async ready(): Promise<void> {
    await this.worker.waitUntilReady();
  }

  /** Aborts an entry in progress. Waits for Redis. */
  async close(): Promise<void> {
    this.closing.abort(new ZerofleetError('worker_draining', 'the worker is shutting down'));
    await this.worker.close();
  }

  /** Closes without waiting for Redis. */
  async disconnect(): Promise<void> {
    await this.worker.disconnect();
  }
}
