import type { Attempt, Generation, Job, Page, ResolvedJobSpec } from '../../contracts/index.js';
import { jobKey, nowText, redisCall, type StoreContext } from '../core/context.js';
import { limitFields } from '../core/limits.js';
import { pageLimit } from '../core/listing.js';
import type { PageRequest } from '../core/paging.js';
import { HOLD_MS } from './holds.js';
import { jobIndexes } from './job-list.js';
import { demandFields, gpuFields, jobOf, overridesField, type RecordReply } from './record.js';

export interface JobUpdate {
  /** The job as it was read; the update is refused when the job has changed since. */
  before: Job;
  spec: ResolvedJobSpec;
  requested_ranks: number;
  /** Names of the changed parts of the document. */
  changed: readonly string[];
}

/** A deleted job whose objects may still exist. */
export interface DeletedJob {
  id: string;
  project: string;
  /** True when its checkpoints and exports are removed as well. */
  artifacts: boolean;
}

/** A deleted checkpoint whose objects may still exist. */
export interface DeletedCheckpoint {
  id: string;
  job_id: string;
  project: string;
  prefix: string;
}

/** Precondition of a request: refused with `version_mismatch` unless the job's `state_version` is one of these. */
export interface Condition {
  if_versions?: readonly number[];
}

/** A user's changes to a job other than pause, resume and cancel: update, retry, list attempts, delete. */
export type JobChanges = ReturnType<typeof jobChanges>;

export function jobChanges(context: StoreContext) {
  const { commands, prefix, redis } = context;
  const jobs = `${prefix}:deleted-jobs`;
  const checkpoints = `${prefix}:deleted-checkpoints`;
  const entriesOf = async <T>(key: string) =>
    Object.entries(await redisCall(redis.hgetall(key))).map(([id, text]) => ({
      id,
      ...(JSON.parse(text) as T),
    }));
  return {
    /**
     * Replaces the job's document. Only name, priority, labels, notes, ranks, limits and overrides may differ, and
     * steps that replace epochs with what follows from them.
     * @throws `version_mismatch` when the job has changed since `before`; `job_final` for changes of anything
     *   but name, labels and notes
     */
    async updateJob({ before, spec, requested_ranks, changed }: JobUpdate): Promise<Job> {
      const { priority, ranks_min } = demandFields(spec);
      const reply = await commands.run('update_job', {
        job_id: before.id,
        if_versions: [before.state_version],
        spec: JSON.stringify(spec),
        fields: {
          ...{ name: spec.name, priority, ranks_min, requested_ranks: String(requested_ranks) },
          ...gpuFields(spec),
          ...overridesField(spec),
          ...limitFields(spec),
          indexes: JSON.stringify(jobIndexes({ ...before, name: spec.name, labels: spec.labels })),
        },
        changed,
        at: nowText(),
      });
      return jobOf(reply as RecordReply);
    },

    /**
     * Queues a failed job as its next attempt, with a fresh error budget.
     * @throws `invalid_state` for a job in any other state (so a repeat after a lost reply is refused with
     *   it); `dataset_not_found`, `model_not_found`, `checkpoint_not_found` when one of its inputs is gone
     */
    async retryJob(jobId: string, condition: Condition = {}): Promise<Job> {
      const reply = await commands.run('retry_job', {
        job_id: jobId,
        hold_ms: HOLD_MS,
        at: nowText(),
        ...condition,
      });
      return jobOf(reply as RecordReply);
    },

    /** Lists attempts, newest first; `after` is an epoch. */
    listAttempts: (jobId: string, page: PageRequest = {}): Promise<Page<Attempt>> =>
      listAttempts(context, jobId, page),

    /**
     * Deletes the record of a job that has ended. The caller removes its objects; until `forgetDeletedJob`,
     * `listDeletedJobs` includes the job, so that another process removes them if the caller fails.
     * @throws `invalid_state` for a job that has not ended; `checkpoint_held`; `checkpoint_pinned` with
     *   `artifacts`
     */
    async deleteJob(jobId: string, options: { artifacts: boolean } & Condition): Promise<void> {
      await commands.run('delete_job', { job_id: jobId, ...options });
    },

    listDeletedJobs: (): Promise<DeletedJob[]> => entriesOf<Omit<DeletedJob, 'id'>>(jobs),

    /** Idempotent. */
    async forgetDeletedJob(jobId: string): Promise<void> {
      await redisCall(redis.hdel(jobs, jobId));
    },

    /** Lists deleted checkpoints whose objects may still exist, after `deleteCheckpoint`. */
    listDeletedCheckpoints: (): Promise<DeletedCheckpoint[]> =>
      entriesOf<Omit<DeletedCheckpoint, 'id'>>(checkpoints),

    /** Idempotent. */
    async forgetDeletedCheckpoint(checkpointId: string): Promise<void> {
      await redisCall(redis.hdel(checkpoints, checkpointId));
    },
  };
}

/** An entry in the form that core/commands/attempt.lua writes. */
interface RawAttempt extends Partial<Omit<Attempt, 'root_cause' | 'generations'>> {
  epoch: number;
  attempt: number;
  workers: string[];
  started_at: string;
  generations?: (Omit<Generation, 'ended_at'> & { ended_at?: string })[];
  /** JSON of the root cause, encoded separately. */
  root_cause?: string;
}

/** Reads the whole list; core/commands/attempt.lua bounds its length. */
async function listAttempts(
  context: StoreContext,
  jobId: string,
  { after, limit }: PageRequest,
): Promise<Page<Attempt>> {
  const count = pageLimit(limit);
  const texts = await redisCall(context.redis.lrange(`${jobKey(context, jobId)}:attempts`, 0, -1));
  const all = texts.map((text) => attemptOf(JSON.parse(text))).reverse();
  const rest = after === undefined ? all : all.filter(({ epoch }) => epoch < Number(after));
  const data = rest.slice(0, count);
  return { data, next_cursor: rest.length > count ? String(data.at(-1)?.epoch) : null };
}

function attemptOf(raw: RawAttempt): Attempt {
  const { epoch, attempt, workers, started_at, root_cause } = raw;
  const endedAt = raw.ended_at ?? null;
  // The end of an attempt is that of its ranks.
  const generations = (raw.generations ?? []).map((generation) => ({ ended_at: endedAt, ...generation }));
  return {
    epoch,
    attempt,
    workers,
    generations,
    started_at,
    ended_at: endedAt,
    outcome: raw.outcome ?? 'running',
    reason: raw.reason ?? null,
    root_cause: root_cause === undefined ? null : JSON.parse(root_cause),
  };
}
