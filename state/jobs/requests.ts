import {
  type Checkpoint,
  type Job,
  type Page,
  parseTrace,
  type ResolvedJobSpec,
  type TraceHeaders,
  ZerofleetError,
} from '../../contracts/index.js';
import { confirmed, indexKey, jobKey, nowText, redisCall, type StoreContext } from '../core/context.js';
import { readPage } from '../core/listing.js';
import type { PageRequest } from '../core/paging.js';
import { type IdempotencyInput, idempotencyEntry } from '../repeats/idempotency.js';
import type { Condition } from './changes.js';
import { finish } from './finish.js';
import { HOLD_MS } from './holds.js';
import { type JobFilter, listJobs } from './job-list.js';
import { JobReader } from './job-reader.js';
import { initialJob, jobOf, type RecordReply, toRecord } from './record.js';

export interface CreateJobInput {
  /** `job_<ulid>`, made by the caller so that a repeated call cannot create two jobs. */
  id: string;
  /** Source of name, labels, pool and the initial number of ranks. */
  spec: ResolvedJobSpec;
  /** Trace of the request; goes into the queue entries of all attempts. */
  trace?: TraceHeaders;
  idempotency?: IdempotencyInput;
}

export interface CreateJobResult {
  /** The job in the form of the first reply. */
  job: Job;
  /** True when an earlier request with this idempotency key created the job. */
  replayed: boolean;
}

/**
 * Filter of checkpoints; all conditions must hold. A page scans a bounded number of jobs: it may end before it is full.
 */
export interface CheckpointFilter extends PageRequest {
  project: string;
  id_prefix?: string;
}

export interface FoundCheckpoint {
  /** The job that wrote it. */
  job_id: string;
  /** Null after its removal. */
  checkpoint: Checkpoint | null;
}

const CANCEL_TRIES = 10;

/** The part of the store that the API uses: requests of users. */
export type JobRequests = ReturnType<typeof jobRequests>;

export function jobRequests(context: StoreContext) {
  const { commands } = context;

  const reader = new JobReader(commands);
  const getJobs = (ids: string[]) => Promise.all(ids.map((id) => reader.read(id)));

  async function request(
    jobId: string,
    action: 'pause' | 'cancel' | 'resume' | 'checkpoint' | 'resize',
    { ranks, if_versions }: { ranks?: number } & Condition = {},
  ) {
    const [outcome, ...record] = await commands.run('request', {
      job_id: jobId,
      action,
      ranks,
      if_versions,
      at: nowText(),
    });
    return outcome === 'idle' ? null : jobOf(record as RecordReply);
  }

  return {
    /**
     * Records a queued job and its first queue entry.
     * @throws `jobs_quota_exceeded`, `ranks_quota_exceeded`, `storage_quota_exceeded`;
     *   `idempotency_key_reused` when the key was used with another body; `dataset_not_found`,
     *   `model_not_found`, `checkpoint_not_found`
     */
    createJob: (input: CreateJobInput): Promise<CreateJobResult> => createJob(context, input),

    /**
     * Returns the job that an idempotency key has created, in the form of the first reply; null for none.
     * @throws `idempotency_key_reused` when the key was used with another body
     */
    findCreated: (idempotency: IdempotencyInput): Promise<Job | null> => findCreated(context, idempotency),

    /** Returns the trace of the request that created a job; null when the job or its trace does not exist. */
    async getTrace(jobId: string): Promise<TraceHeaders | null> {
      const text = await redisCall(context.redis.hget(jobKey(context, jobId), 'trace'));
      return text === null ? null : (JSON.parse(text) as TraceHeaders);
    },

    /**
     * Returns the job, frozen; the same object as before while nothing has changed. Null when it does not
     * exist.
     */
    getJob: (jobId: string): Promise<Job | null> => reader.read(jobId),

    /** Returns the project of a job; null when the job does not exist. */
    async projectOfJob(jobId: string): Promise<string | null> {
      return redisCall(context.redis.hget(jobKey(context, jobId), 'project'));
    },

    /** Lists the jobs of one project, newest first, each as `getJob` returns it. */
    listJobs: (filter: JobFilter = {}): Promise<Page<Job>> => listJobs(context, filter, getJobs),

    /** Pauses a job that no worker holds at once; a running job becomes `pausing`. Idempotent. */
    async requestPause(jobId: string, condition?: Condition): Promise<Job> {
      return (await request(jobId, 'pause', condition)) as Job;
    },

    /** Cancels a job that no worker holds at once; a running job becomes `cancelling`. Idempotent. */
    async requestCancel(jobId: string, condition?: Condition): Promise<Job> {
      // No worker holds the job, so it is finished here. A worker may claim or release it between the two commands, so
      // both are repeated until one of them succeeds.
      for (let tries = 0; tries < CANCEL_TRIES; tries += 1) {
        const asked = await request(jobId, 'cancel', condition);
        if (asked) return asked;
        const cancelled = await finish(context, jobId, null, 'cancelled', { reason: 'user_request' });
        if (cancelled) return cancelled;
      }
      throw new ZerofleetError('invalid_state', `${jobId} changes hands all the time; try again`);
    },

    /**
     * Queues a paused job as its next attempt.
     * @throws `ranks_quota_exceeded`; `invalid_state` for a job in any other state (so a repeat after a lost
     *   reply is refused with it)
     */
    async resumeJob(jobId: string, options?: { ranks?: number } & Condition): Promise<Job> {
      return (await request(jobId, 'resume', options)) as Job;
    },

    /**
     * Asks the worker that holds the job to save at the next step boundary and continue. One checkpoint
     * answers all requests before it; the next worker handles a request that the previous one could not.
     * @throws `invalid_state` for a job that no worker holds, or that is about to stop
     */
    async requestCheckpoint(jobId: string, condition?: Condition): Promise<Job> {
      return (await request(jobId, 'checkpoint', condition)) as Job;
    },

    /**
     * Exempts a checkpoint from the retention rule, or ends the exemption. Returns null when the checkpoint
     * does not exist.
     */
    pinCheckpoint: (checkpointId: string, pinned: boolean): Promise<Checkpoint | null> =>
      changeCheckpoint(context, 'pin_checkpoint', { checkpointId, pinned }),

    /**
     * Deletes the record of a checkpoint. The caller deletes its objects; until `forgetDeletedCheckpoint`,
     * `listDeletedCheckpoints` includes it. Returns null when the checkpoint does not exist.
     * @throws `checkpoint_pinned`; `checkpoint_held`; `checkpoint_in_use` while it is the newest or the best
     *   of a job that has not ended
     */
    deleteCheckpoint: (checkpointId: string): Promise<Checkpoint | null> =>
      changeCheckpoint(context, 'delete_checkpoint', { checkpointId }),

    /**
     * Changes the number of ranks that the job should run on. A running job changes at its next step
     * boundary, or, to grow, when enough slots are free. Idempotent.
     * @throws `invalid_state` while it is cancelled, `ranks_quota_exceeded`
     */
    async requestResize(jobId: string, ranks: number, condition?: Condition): Promise<Job> {
      return (await request(jobId, 'resize', { ...condition, ranks })) as Job;
    },

    async listCheckpoints(jobId: string, page: PageRequest = {}): Promise<Page<Checkpoint>> {
      const key = jobKey(context, jobId);
      const load = async (entries: string[]) => {
        const ids = entries.map((entry) => entry.slice(entry.indexOf(':') + 1));
        const texts = await redisCall(context.redis.hmget(`${key}:checkpoints`, ...ids));
        return texts.map((text) => (text === null ? null : (JSON.parse(text) as Checkpoint)));
      };
      const found = await readPage(context, { indexes: [`${key}:checkpoint-order`], page, load });
      if (found.data.length === 0 && (await redisCall(context.redis.exists(key))) === 0) {
        throw new ZerofleetError('job_not_found', `there is no job ${jobId}`);
      }
      return found;
    },

    /** Lists the checkpoints of all jobs of a project, newest first. */
    listProjectCheckpoints({ project, ...page }: CheckpointFilter): Promise<Page<Checkpoint>> {
      const load = (ids: string[]) =>
        Promise.all(ids.map(async (id) => (await findCheckpoint(context, id))?.checkpoint ?? null));
      return readPage(context, { indexes: [indexKey(context, project, 'checkpoints')], page, load });
    },

    /**
     * Returns a checkpoint of any job. Null when the id never existed, or its removal is no longer among
     * those remembered.
     */
    findCheckpoint: (checkpointId: string): Promise<FoundCheckpoint | null> =>
      findCheckpoint(context, checkpointId),
  };
}

/**
 * Returns the position of a checkpoint in the list of its job, as `checkpoint_order` in core/commands/checkpoint.lua
 * does.
 */
export function checkpointPosition({ step, id }: Pick<Checkpoint, 'step' | 'id'>): string {
  return `${String(step).padStart(12, '0')}:${id}`;
}

/** @returns the checkpoint after the change, or before its removal; null when it does not exist */
async function changeCheckpoint(
  { commands }: StoreContext,
  command: 'pin_checkpoint' | 'delete_checkpoint',
  { checkpointId, pinned }: { checkpointId: string; pinned?: boolean },
): Promise<Checkpoint | null> {
  const [text] = await commands.run(command, { checkpoint_id: checkpointId, pinned, at: nowText() });
  return text === '' ? null : (JSON.parse(text as string) as Checkpoint);
}

async function findCreated(context: StoreContext, idempotency: IdempotencyInput): Promise<Job | null> {
  const { id, body_hash } = idempotencyEntry(idempotency);
  const key = `${context.prefix}:idempotency:${id}`;
  const [known, reply] = await redisCall(context.redis.hmget(key, 'body_hash', 'reply'));
  if (!known || !reply) return null;
  if (known !== body_hash)
    throw new ZerofleetError('idempotency_key_reused', 'the idempotency key was used with another request');
  // The first request may have failed because no replica had the job.
  await confirmed(context);
  return JSON.parse(reply) as Job;
}

async function createJob({ commands }: StoreContext, input: CreateJobInput): Promise<CreateJobResult> {
  const at = nowText();
  const job = initialJob(input.id, input.spec, at);
  const [reply, replayed] = await commands.run('create_job', {
    job_id: job.id,
    record: { ...toRecord(job), ...(input.trace && { trace: JSON.stringify(input.trace) }) },
    trace_id: parseTrace(input.trace?.traceparent)?.trace_id,
    reply: JSON.stringify(job),
    hold_ms: HOLD_MS,
    at,
    idempotency: input.idempotency && idempotencyEntry(input.idempotency),
  });
  return { job: JSON.parse(reply as string) as Job, replayed: replayed === '1' };
}

async function jobOfRemoved({ redis, prefix }: StoreContext, checkpointId: string): Promise<string | null> {
  const key = `${prefix}:removed-checkpoints`;
  const found = await redisCall(redis.zrangebylex(key, `[${checkpointId} `, '+', 'LIMIT', 0, 1));
  const [id, jobId = null] = found[0]?.split(' ') ?? [];
  return id === checkpointId ? jobId : null;
}

async function findCheckpoint(context: StoreContext, checkpointId: string): Promise<FoundCheckpoint | null> {
  const { redis, prefix } = context;
  const jobId =
    (await redisCall(redis.hget(`${prefix}:checkpoint-jobs`, checkpointId))) ??
    (await jobOfRemoved(context, checkpointId));
  if (jobId === null) return null;
  const text = await redisCall(redis.hget(`${jobKey(context, jobId)}:checkpoints`, checkpointId));
  return { job_id: jobId, checkpoint: text === null ? null : (JSON.parse(text) as Checkpoint) };
}
