import type { Checkpoint, Job } from '../../contracts/index.js';
import { nowText, redisCall, type StoreContext } from '../core/context.js';
import type { IdempotencyEntry } from '../repeats/idempotency.js';
import { HOLD_MS } from './holds.js';
import { initialJob, toRecord } from './record.js';

/** A job to restore after the store lost its record. */
export interface RestoredJob {
  /** Its epoch is one that no worker ever had, so workers that still run the job are fenced. */
  job: Job;
  /** Oldest first. */
  checkpoints: Checkpoint[];
  /** The entry that `putSpec` stored; null when there was no key or it has expired. */
  idempotency: IdempotencyEntry | null;
}

/** Maximum duration of a restore; an interrupted one ends by then. */
const RESTORE_MS = 3_600_000;

/** Restores records that Redis has lost. */
export type JobRestore = ReturnType<typeof jobRestore>;

export function jobRestore({ commands, redis, prefix }: StoreContext) {
  return {
    /** Until `endRestore`, or for an hour, no storage quota refuses a record, and nothing is collected. */
    async beginRestore(): Promise<void> {
      await redisCall(redis.set(`${prefix}:restore`, nowText(), 'PX', RESTORE_MS));
    },

    /**
     * Restores a job; a queued one gets its queue entry. Returns false, without a change, when the job exists
     * or is being deleted.
     */
    async restoreJob({ job, checkpoints, idempotency }: RestoredJob): Promise<boolean> {
      const [restored] = await commands.run('restore_job', {
        job_id: job.id,
        record: toRecord(job),
        history: job.state_history.map((change) => JSON.stringify(change)),
        checkpoints: checkpoints.map((checkpoint) => ({
          id: checkpoint.id,
          document: JSON.stringify(checkpoint),
        })),
        hold_ms: HOLD_MS,
        at: nowText(),
        reply: JSON.stringify(initialJob(job.id, job.spec, job.created_at)),
        idempotency: idempotency ?? undefined,
      });
      return restored === '1';
    },

    async endRestore(): Promise<void> {
      await redisCall(redis.del(`${prefix}:restore`));
    },
  };
}
