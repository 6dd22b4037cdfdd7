import type { Job as QueueJob } from 'bullmq';
import {
  type EditPayload,
  type EditReply,
  type ExportPayload,
  type ExportReply,
  exportQueueName,
  ZerofleetError,
} from '../../../contracts/index.js';
import { putExportRecord, readExportRecord } from '../../../formats/checkpoint/export-record.js';
import { editName, exportName } from '../../../formats/checkpoint/layout.js';
import { backoffMs, waitOrAbort } from '../../../platform/process/retry.js';
import { codeOf, isRetryable, toRankError } from '../../shared/errors.js';
import { putEventFile } from '../../tasks/export/event-file.js';
import { MAX_LOST_WORKERS } from '../attempt/failure.js';
import { withSession } from '../credentials/sessions.js';
import { makeEdit } from '../edit/commit-edit.js';
import { runTask } from '../supervisor/task-runner.js';
import { QueueServer, type QueueServerOptions } from './queue-server.js';

/** Lets BullMQ restart exports of lost workers without limit; `handle` counts them. */
const UNLIMITED_STALLS = 1_000_000_000;

type Payload = ExportPayload | EditPayload;
type Reply = ExportReply | EditReply;

/**
 * Makes the exports and the changes of tensors of the pool's queue, one at a time, each in a child process. Two workers
 * may write one export, when the first was stopped and resumes. Both write the same bytes to the same keys: a
 * checkpoint never changes, and the metrics of its steps were reported long before a second worker begins. The record
 * that completes the export is created once. So no lease is needed.
 */
export class ExportServer extends QueueServer<Payload, Reply> {
  constructor(options: QueueServerOptions) {
    super(options, exportQueueName(options.pool), {
      lockDuration: options.timing.lease_ms,
      stalledInterval: options.timing.stalled_interval_ms,
      maxStalledCount: UNLIMITED_STALLS,
    });
  }

  /**
   * Throws a retryable error after a backoff, so that the export is retried behind the other entries of the queue. The
   * delay is spent here: a delayed entry would depend on the clocks of two workers.
   */
  protected async handle({
    data,
    attemptsMade,
    stalledCounter,
  }: Pick<QueueJob<Payload>, 'data' | 'attemptsMade' | 'stalledCounter'>): Promise<Reply> {
    const { timing, log } = this.options;
    if (stalledCounter > MAX_LOST_WORKERS) return this.end(data, failed(workersLost(stalledCounter)));
    try {
      return await this.end(data, 'edit_id' in data ? await this.edit(data) : await this.write(data));
    } catch (error) {
      log.warn({ err: error, checkpoint: data.checkpoint.id }, 'export failed');
      if (!isRetryable(error)) return this.end(data, failed(removedCheckpoint(error, data)));
      await waitOrAbort(backoffMs(timing.storage, attemptsMade + 1), this.closing.signal);
      throw error;
    }
  }

  private async end<R extends Reply>(payload: Payload, reply: R): Promise<R> {
    await this.releaseHold(payload);
    return reply;
  }

  /** Releases the hold on the checkpoint. A hold that stays expires. */
  private async releaseHold(payload: Payload): Promise<void> {
    const { checkpoint } = payload;
    const holder = holderOf(payload);
    await this.options.store
      .letGoCheckpoint(checkpoint.id, holder)
      .catch((error: unknown) =>
        this.options.log.warn({ err: error, holder }, 'hold on checkpoint not released'),
      );
  }

  private async edit(payload: EditPayload): Promise<EditReply> {
    const { store, objects, object_store, processes, timing, log } = this.options;
    const { checkpoint, tensor, tensor_state, values } = payload;
    await store.holdCheckpoint(checkpoint.id, holderOf(payload));
    const { signal } = this.closing;
    const checkpointId = await makeEdit({ store, objects, timing }, payload, (job, directory) =>
      withSession(this.options, job, { purpose: 'edit', signal }, (session) => {
        const { prefix } = checkpoint;
        const change = { tensor, tensor_state, values, retry: timing.storage };
        const request = {
          kind: 'edit',
          object_store,
          spec: job.spec,
          checkpoint: prefix,
          directory,
          ...change,
        } as const;
        return runTask(processes, request, { signal, session, log });
      }),
    );
    await objects
      .delete([values.key])
      .catch((error: unknown) => log.warn({ err: error, key: values.key }, 'values not removed'));
    return { error: null, checkpoint_id: checkpointId };
  }

  private async write({ job_id, checkpoint, prefix, ...kind }: ExportPayload): Promise<ExportReply> {
    const { store, objects, object_store, processes, timing, log } = this.options;
    if ((await readExportRecord(objects, prefix)) !== null) return { error: null };
    // The API held the checkpoint for the time in the queue. An export without a record may still find its checkpoint.
    await store.holdCheckpoint(checkpoint.id, exportName({ ...kind, checkpoint: checkpoint.id }));
    const job = await store.getJob(job_id);
    if (job === null) throw new ZerofleetError('checkpoint_not_found', `job ${job_id} is gone`);
    const { signal } = this.closing;
    const { tensorboard, ...weights } = kind;
    const written = await withSession(this.options, job, { purpose: 'export', signal }, (session) =>
      runTask(
        processes,
        {
          kind: 'export',
          object_store,
          spec: job.spec,
          checkpoint: checkpoint.prefix,
          ...weights,
          prefix,
          retry: timing.storage,
        },
        { signal, session, log },
      ),
    );
    const { step } = checkpoint;
    const eventFiles = tensorboard
      ? await putEventFile({ store, objects }, job, { prefix, step }, timing.storage)
      : [];
    const files = [...written.files, ...eventFiles];
    const record = { format_version: 1 as const, checkpoint_id: checkpoint.id, job_id, ...kind };
    await putExportRecord(objects, { ...record, ...written, files });
    return { error: null };
  }
}

const failed = (error: unknown) => ({ error: toRankError(error) });

function holderOf(payload: Payload): string {
  if ('edit_id' in payload) return editName(payload.edit_id);
  const { checkpoint, ...kind } = payload;
  return exportName({ ...kind, checkpoint: checkpoint.id });
}

/** Reports a missing object as a removed checkpoint: retention may have removed it meanwhile. */
function removedCheckpoint(error: unknown, { checkpoint, job_id, ...payload }: Payload): unknown {
  if (codeOf(error) !== 'object_not_found') return error;
  if ('edit_id' in payload) {
    const message = `checkpoint ${checkpoint.id} or the values of ${payload.tensor} were removed before the change: send it again`;
    return new ZerofleetError('checkpoint_not_found', message);
  }
  const message =
    `checkpoint ${checkpoint.id} of job ${job_id} was removed before it was exported; export one that the job keeps, ` +
    'or let it keep more (checkpoint.keep)';
  return new ZerofleetError('checkpoint_not_found', message);
}

/** Error of an export that lost too many workers in a row. */
function workersLost(lostWorkers: number): ZerofleetError {
  return new ZerofleetError(
    'workers_lost',
    `${lostWorkers} workers were lost with the export, one after the other. If the machines were healthy, the export exhausts its workers: ` +
      'give them more memory, then ask for it again',
  );
}
