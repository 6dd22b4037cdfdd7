import { type ConnectionOptions, type Job, Queue, type QueueOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import {
  type ExportPayload,
  type ExportReply,
  exportQueueName,
  REDIS_PREFIX,
  ZerofleetError,
} from '../../contracts/index.js';
import { exportName } from '../../formats/checkpoint/layout.js';
import type { Logger } from '../../platform/logging/logging.js';
import { disconnectRedis, openRedis, redisError } from '../../platform/redis/connect.js';
import type { ExportPort, ExportProgress } from '../services.js';

/** Attempts with growing backoff, for failures that may pass, such as an unreachable object store. */
const ATTEMPTS = 12;
/** Retention of a failure. */
const REMEMBER_SECONDS = 7 * 24 * 3600;

type Entry = Job<ExportPayload, ExportReply>;
type ExportEntries = Queue<ExportPayload, ExportReply>;

/**
 * Exports as BullMQ entries, one per export; they survive the API and every worker. All queues share a connection, and none is kept between
 * calls. A queue that is only read leaves no key.
 */
export class ExportQueue implements ExportPort {
  readonly #redis: Redis;

  constructor(
    redisUrl: string,
    private readonly log: Logger,
  ) {
    this.#redis = openRedis(redisUrl, 'commands', log);
  }

  async request(pool: string, payload: ExportPayload): Promise<ExportProgress> {
    return this.#asked(pool, {}, async (queue) => {
      const known = await this.#find(queue, payload);
      const progress = known && (await progressOf(known));
      if (progress && progress.state !== 'failed') return progress;
      // A finished entry remains here only if its files are gone or it failed: it is requested again.
      await known?.remove();
      await queue.add('export', payload, {
        jobId: idOf(payload),
        attempts: ATTEMPTS,
        removeOnComplete: { age: REMEMBER_SECONDS },
        removeOnFail: { age: REMEMBER_SECONDS },
      });
      return { state: 'queued' };
    });
  }

  async progress(pool: string, payload: ExportPayload): Promise<ExportProgress | null> {
    return this.#asked(pool, { skipMetasUpdate: true }, async (queue) => {
      const entry = await this.#find(queue, payload);
      return entry && progressOf(entry);
    });
  }

  /** Closes the connection. Idempotent. */
  async close(): Promise<void> {
    await disconnectRedis(this.#redis);
  }

  async #find(queue: ExportEntries, payload: ExportPayload): Promise<Entry | null> {
    return (await queue.getJob(idOf(payload))) ?? null;
  }

  async #asked<T>(
    pool: string,
    options: Partial<QueueOptions>,
    work: (queue: ExportEntries) => Promise<T>,
  ): Promise<T> {
    const queue: ExportEntries = new Queue(exportQueueName(pool), {
      connection: this.#redis as ConnectionOptions,
      prefix: REDIS_PREFIX,
      // Otherwise BullMQ asks the server for its version each time.
      skipVersionCheck: true,
      // No reader of BullMQ's events exists.
      streams: { events: { maxLen: 0 } },
      ...options,
    });
    // Without a listener an error event would end the process; calls report their own failure.
    queue.on('error', (error) => this.log.warn({ err: error, pool }, 'export queue connection'));
    try {
      return await work(queue);
    } catch (error) {
      const known = redisError(error);
      if (known.code === 'redis_full') throw known;
      throw new ZerofleetError('job_store_unavailable', 'the queue does not answer', { cause: error });
    } finally {
      await queue.close();
    }
  }
}

function idOf({ checkpoint, ...kind }: ExportPayload): string {
  return exportName({ ...kind, checkpoint: checkpoint.id });
}

/** Returns the state of an export, or null for a written one: the record of the export describes it. */
async function progressOf(entry: Entry): Promise<ExportProgress | null> {
  if (entry.finishedOn !== undefined) return failureOf(entry);
  const state = await entry.getState();
  if (state === 'unknown') return null;
  // `entry` was read before the state and has no result yet, so an export that has ended meanwhile is reported as running.
  const isTaken = state === 'active' || state === 'completed' || state === 'failed';
  return { state: isTaken ? 'running' : 'queued' };
}

function failureOf({ returnvalue, failedReason }: Entry): ExportProgress | null {
  if (returnvalue === null)
    return { state: 'failed', error: { code: 'export_failed', message: failedReason } };
  return returnvalue.error && { state: 'failed', error: returnvalue.error };
}
