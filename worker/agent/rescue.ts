import { type ConnectionOptions, Queue } from 'bullmq';
import { type QueuePayload, queueName, REDIS_PREFIX } from '../../contracts/index.js';
import type { JobAttempts } from '../../platform/job-store/port.js';
import type { Logger } from '../../platform/logging.js';
import { redisOptions } from '../../platform/redis/connect.js';
import { waitOrAbort } from '../retry.js';
import { within } from '../within.js';
import type { Timing } from './timing.js';

export interface RescueOptions {
  store: Pick<JobAttempts, 'requeueAbandoned' | 'requeueUnqueued'>;
  redis_url: string;
  pool: string;
  timing: Pick<Timing, 'lease_ms' | 'stalled_interval_ms' | 'abandoned_interval_ms'>;
  log: Logger;
}

/** Failed entries that are looked at in one round. */
const BATCH = 100;
const MAX_DISCONNECT_MS = 1_000;

/**
 * A safety net below the queue's own. It finds jobs whose worker is gone and whose entry was lost as well, and entries that
 * BullMQ ended as failed: no entry of ours ever fails by what a job does, but an error that the queue itself meets while
 * Redis comes and goes ends one, and then nobody would look at its job again.
 */
export class Rescue {
  private readonly closing = new AbortController();
  private readonly queue: Queue<QueuePayload>;
  private readonly loop: Promise<void>;

  constructor(private readonly options: RescueOptions) {
    this.queue = new Queue<QueuePayload>(queueName(options.pool), {
      connection: redisOptions(options.redis_url, 'commands') as ConnectionOptions,
      prefix: REDIS_PREFIX,
    });
    this.queue.on('error', (error) => options.log.warn({ err: error }, 'queue of the rescue'));
    this.loop = this.run();
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.closing.abort();
    // A Redis that is gone must not keep the round that is under way.
    await within(MAX_DISCONNECT_MS, this.queue.disconnect());
    await this.loop;
  }

  private async run(): Promise<void> {
    const { timing, log } = this.options;
    const { signal } = this.closing;
    for (;;) {
      await waitOrAbort(timing.abandoned_interval_ms, signal);
      if (signal.aborted) return;
      await this.round().catch((error: unknown) => {
        if (!signal.aborted) log.warn({ err: error }, 'abandoned jobs not looked for');
      });
    }
  }

  private async round(): Promise<void> {
    const { store, timing, log } = this.options;
    // By then the queue should have noticed by itself.
    const ids = await store.requeueAbandoned(timing.lease_ms + 2 * timing.stalled_interval_ms);
    if (ids.length > 0) log.warn({ job_ids: ids }, 'abandoned jobs queued again');
    for (const entry of await this.queue.getFailed(0, BATCH - 1)) {
      const { job_id, attempt } = entry.data;
      if (await store.requeueUnqueued(job_id, attempt)) {
        log.warn({ job_id, attempt, why: entry.failedReason }, 'queue entry lost, job queued again');
      }
      await entry.remove();
    }
  }
}
