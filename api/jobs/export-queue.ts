import { type ConnectionOptions, type Job, Queue, type QueueOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import {
  type EditPayload,
  type EditReply,
  type ExportPayload,
  type ExportReply,
  exportQueueName,
  REDIS_PREFIX,
  ZerofleetError,
} from '../../contracts/index.js';
import { editName, exportName } from '../../formats/checkpoint/layout.js';
import type { Logger } from '../../platform/logging/logging.js';
import { disconnectRedis, openRedis, redisError } from '../../platform/redis/connect.js';
import type { EditPort, EditProgress, ExportPort, ExportProgress, FoundEdit } from '../services.js';

/** Attempts with growing backoff, for failures that may pass, such as an unreachable object store. */
const ATTEMPTS = 12;
/** Retention of a failure. */
const REMEMBER_SECONDS = 7 * 24 * 3600;

type Payload = ExportPayload | EditPayload;
type Reply = ExportReply | EditReply;
type Entry = Job<Payload, Reply>;
type Entries = Queue<Payload, Reply>;

/**
 * Exports and changes of tensors as BullMQ entries, one for each; they survive the API and every worker. All queues
 * share a connection, and none is kept between calls. A queue that is only read leaves no key.
 */
export class ExportQueue implements ExportPort, EditPort {
  private readonly redis: Redis;

  constructor(
    redisUrl: string,
    private readonly log: Logger,
  ) {
    this.redis = openRedis(redisUrl, 'commands', log);
  }

  async request(pool: string, payload: ExportPayload): Promise<ExportProgress> {
    // A finished entry remains here only if its files are gone or it failed: it is requested again.
    return this.enqueue(pool, payload, progressOf);
  }

  async progress(pool: string, payload: ExportPayload): Promise<ExportProgress | null> {
    return this.find(pool, idOf(payload), progressOf);
  }

  async requestEdit(pool: string, payload: EditPayload): Promise<EditProgress> {
    return this.enqueue(pool, payload, editProgressOf);
  }

  async findEdit(pool: string, editId: string): Promise<FoundEdit | null> {
    return this.find(pool, editName(editId), async (entry) => {
      const progress = await editProgressOf(entry);
      return progress && 'edit_id' in entry.data ? { payload: entry.data, progress } : null;
    });
  }

  /** Closes the connection. Idempotent. */
  async close(): Promise<void> {
    await disconnectRedis(this.redis);
  }

  private async find<T>(
    pool: string,
    id: string,
    read: (entry: Entry) => Promise<T | null>,
  ): Promise<T | null> {
    return this.withQueue(pool, { skipMetasUpdate: true }, async (queue) => {
      const entry = await queue.getJob(id);
      return entry === undefined ? null : read(entry);
    });
  }

  private async enqueue<Progress extends { state: string }>(
    pool: string,
    payload: Payload,
    progressOf: (entry: Entry) => Promise<Progress | null>,
  ): Promise<Progress | { state: 'queued' }> {
    return this.withQueue(pool, {}, async (queue) => {
      const known = await queue.getJob(idOf(payload));
      const progress = known && (await progressOf(known));
      if (progress && progress.state !== 'failed') return progress;
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

  private async withQueue<T>(
    pool: string,
    options: Partial<QueueOptions>,
    work: (queue: Entries) => Promise<T>,
  ): Promise<T> {
    const queue: Entries = new Queue(exportQueueName(pool), {
      connection: this.redis as ConnectionOptions,
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

/** Id of the entry. */
function idOf(payload: Payload): string {
  if ('edit_id' in payload) return editName(payload.edit_id);
  const { checkpoint, ...kind } = payload;
  return exportName({ ...kind, checkpoint: checkpoint.id });
}

/** Returns null for an entry that is gone. */
async function editProgressOf(entry: Entry): Promise<EditProgress | null> {
  const { finishedOn, returnvalue } = entry;
  if (finishedOn !== undefined && returnvalue !== null && 'checkpoint_id' in returnvalue)
    return { state: 'succeeded', checkpoint_id: returnvalue.checkpoint_id };
  return progressOf(entry);
}

/** Returns the state of an export, or null for a written one: the record of the export describes it. */
async function progressOf(entry: Entry): Promise<ExportProgress | null> {
  if (entry.finishedOn !== undefined) return failureOf(entry);
  const state = await entry.getState();
  if (state === 'unknown') return null;
  // `entry` was read before the state and has no result yet, so an export that has ended meanwhile is reported as
  // running.
  const isTaken = state === 'active' || state === 'completed' || state === 'failed';
  return { state: isTaken ? 'running' : 'queued' };
}

function failureOf({ returnvalue, failedReason }: Entry): ExportProgress | null {
  if (returnvalue === null)
    return { state: 'failed', error: { code: 'export_failed', message: failedReason } };
  return returnvalue.error && { state: 'failed', error: returnvalue.error };
}
