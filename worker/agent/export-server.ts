import { type ConnectionOptions, type Job as QueueJob, Worker } from 'bullmq';
import {
  type ExportPayload,
  type ExportReply,
  exportQueueName,
  REDIS_PREFIX,
  ZerofleetError,
} from '../../contracts/index.js';
import { putExportRecord, readExportRecord } from '../../platform/checkpoint/export-record.js';
import { exportName } from '../../platform/checkpoint/layout.js';
import { backoffMs, waitOrAbort } from '../../platform/process/retry.js';
import { redisOptions } from '../../platform/redis/connect.js';
import type { AgentDeps } from '../attempt/context.js';
import { MAX_LOST_WORKERS } from '../attempt/failure.js';
import { codeOf, isRetryable, toRankError } from '../common/errors.js';
import { withSession } from '../credentials/sessions.js';
import { runTask } from '../tasks/task-runner.js';

export interface ExportServerOptions extends AgentDeps {
  redis_url: string;
  pool: string;
}

/** BullMQ fails no export whose worker was lost: another one begins it again, and counts. */
const UNLIMITED_STALLS = 1_000_000_000;

/**
 * Writes the exports that the pool is asked for, one at a time, each in a child process. Two workers may meet in one export, when the
 * first was stopped and comes back: as a checkpoint never changes, both write the same bytes to the same keys, and the record that
 * makes them count is created once. So nothing here needs a lease.
 */
export class ExportServer {
  private readonly worker: Worker<ExportPayload, ExportReply>;
  private readonly closing = new AbortController();

  constructor(private readonly options: ExportServerOptions) {
    this.worker = new Worker<ExportPayload, ExportReply>(
      exportQueueName(options.pool),
      (entry) => this.answer(entry),
      {
        connection: redisOptions(options.redis_url, 'queue') as ConnectionOptions,
        prefix: REDIS_PREFIX,
        lockDuration: options.timing.lease_ms,
        stalledInterval: options.timing.stalled_interval_ms,
        maxStalledCount: UNLIMITED_STALLS,
      },
    );
    this.worker.on('error', (error) => options.log.warn({ err: error }, 'export queue'));
  }

  /** Resolves when exports are being taken. */
  async ready(): Promise<void> {
    await this.worker.waitUntilReady();
  }

  /** An export that is being written goes back to the queue. Waits for Redis. */
  async close(): Promise<void> {
    this.closing.abort(new ZerofleetError('worker_draining', 'the worker is shutting down'));
    await this.worker.close();
  }

  /** For a Redis that is gone. */
  async disconnect(): Promise<void> {
    await this.worker.disconnect();
  }

  /**
   * What may succeed later is thrown after a pause, and is tried again behind the others of the queue. The pause is kept here: the queue
   * would compare the clock of whoever met the failure with that of whoever looks next.
   */
  private async answer({
    data,
    attemptsMade,
    stalledCounter,
  }: Pick<QueueJob<ExportPayload>, 'data' | 'attemptsMade' | 'stalledCounter'>): Promise<ExportReply> {
    const { timing, log } = this.options;
    if (stalledCounter > MAX_LOST_WORKERS) return this.end(data, poison(stalledCounter));
    try {
      await this.write(data);
    } catch (error) {
      log.warn({ err: error, checkpoint: data.checkpoint.id }, 'export failed');
      if (!isRetryable(error)) return this.end(data, asOurs(error, data));
      await waitOrAbort(backoffMs(timing.storage, attemptsMade + 1), this.closing.signal);
      throw error;
    }
    return this.end(data, null);
  }

  private async end(payload: ExportPayload, error: unknown): Promise<ExportReply> {
    await this.letGo(payload);
    return { error: error === null ? null : toRankError(error) };
  }

  /** A hold that is not let go ends by itself. */
  private async letGo({ checkpoint, format, dtype }: ExportPayload): Promise<void> {
    const holder = exportName({ checkpoint: checkpoint.id, format, dtype });
    await this.options.store
      .letGoCheckpoint(checkpoint.id, holder)
      .catch((error: unknown) => this.options.log.warn({ err: error, holder }, 'checkpoint not let go'));
  }

  private async write({ job_id, checkpoint, format, dtype, prefix }: ExportPayload): Promise<void> {
    const { store, objects, object_store, processes, timing, log } = this.options;
    if ((await readExportRecord(objects, prefix)) !== null) return;
    // The API held it for the time in the queue. What is not recorded may still be there.
    await store.holdCheckpoint(checkpoint.id, exportName({ checkpoint: checkpoint.id, format, dtype }));
    const job = await store.getJob(job_id);
    if (job === null) throw new ZerofleetError('checkpoint_not_found', `job ${job_id} is gone`);
    const { signal } = this.closing;
    const written = await withSession(this.options, job, { purpose: 'export', signal }, (session) =>
      runTask(
        processes,
        {
          kind: 'export',
          object_store,
          spec: job.spec,
          checkpoint: checkpoint.prefix,
          format,
          dtype,
          prefix,
          retry: timing.storage,
        },
        { signal, session, log },
      ),
    );
    const record = { format_version: 1 as const, checkpoint_id: checkpoint.id, job_id, format, dtype };
    await putExportRecord(objects, { ...record, ...written });
  }
}

/** Retention may have removed the checkpoint meanwhile: an object that is missing means that. */
function asOurs(error: unknown, { checkpoint, job_id }: ExportPayload): unknown {
  if (codeOf(error) !== 'object_not_found') return error;
  const message =
    `checkpoint ${checkpoint.id} of job ${job_id} was removed before it was exported; export one that the job keeps, ` +
    'or let it keep more (checkpoint.keep_last)';
  return new ZerofleetError('checkpoint_not_found', message);
}

/** The error of an export that takes its workers down, one after the other. */
function poison(lost_workers: number): ZerofleetError {
  return new ZerofleetError(
    'workers_lost',
    `${lost_workers} workers were lost with the export, one after the other. If it was not the machines, the export takes its workers ` +
      'down: give them more memory, then ask for it again',
  );
}
