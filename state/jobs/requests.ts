import {
  type Checkpoint,
  type Job,
  parseTrace,
  type TraceHeaders,
  ZerofleetError,
} from '../../contracts/index.js';
import { confirmed, indexKey, jobKey, nowText, redisCall, type StoreContext } from '../core/context.js';
import { readPage } from '../core/listing.js';
import { idempotencyEntry } from '../repeats/idempotency.js';
import type { IdempotencyInput } from '../repeats/repeats-port.js';
import type { Condition } from './changes-port.js';
import { finish } from './finish.js';
import { HOLD_MS } from './holds.js';
import { listJobs } from './job-list.js';
import { JobReader } from './job-reader.js';
import { initialJob, jobOf, type RecordReply, toRecord } from './record.js';
import type { CreateJobInput, CreateJobResult, FoundCheckpoint, JobRequests } from './requests-port.js';

const CANCEL_TRIES = 10;

export function jobRequests(context: StoreContext): JobRequests {
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

  async function jobOfRemoved(checkpointId: string): Promise<string | null> {
    const { redis, prefix } = context;
    const key = `${prefix}:removed-checkpoints`;
    const found = await redisCall(redis.zrangebylex(key, `[${checkpointId} `, '+', 'LIMIT', 0, 1));
    const [id, jobId = null] = found[0]?.split(' ') ?? [];
    return id === checkpointId ? jobId : null;
  }

  async function findCheckpoint(checkpointId: string): Promise<FoundCheckpoint | null> {
    const { redis, prefix } = context;
    const jobId =
      (await redisCall(redis.hget(`${prefix}:checkpoint-jobs`, checkpointId))) ??
      (await jobOfRemoved(checkpointId));
    if (jobId === null) return null;
    const text = await redisCall(redis.hget(`${jobKey(context, jobId)}:checkpoints`, checkpointId));
    return { job_id: jobId, checkpoint: text === null ? null : (JSON.parse(text) as Checkpoint) };
  }

  return {
    createJob: (input) => createJob(context, input),

    findCreated: (idempotency) => findCreated(context, idempotency),

    async getTrace(jobId) {
      const text = await redisCall(context.redis.hget(jobKey(context, jobId), 'trace'));
      return text === null ? null : (JSON.parse(text) as TraceHeaders);
    },

    getJob: (jobId) => reader.read(jobId),

    async projectOfJob(jobId) {
      return redisCall(context.redis.hget(jobKey(context, jobId), 'project'));
    },

    listJobs: (filter = {}) => listJobs(context, filter, getJobs),

    async requestPause(jobId, condition) {
      return (await request(jobId, 'pause', condition)) as Job;
    },

    async requestCancel(jobId, condition) {
      // No worker holds the job, so it is finished here. A worker may claim or release it between the two commands, so both are repeated
      // until one of them succeeds.
      for (let tries = 0; tries < CANCEL_TRIES; tries += 1) {
        const asked = await request(jobId, 'cancel', condition);
        if (asked) return asked;
        const cancelled = await finish(context, jobId, null, 'cancelled', { reason: 'user_request' });
        if (cancelled) return cancelled;
      }
      throw new ZerofleetError('invalid_state', `${jobId} changes hands all the time; try again`);
    },

    async resumeJob(jobId, options) {
      return (await request(jobId, 'resume', options)) as Job;
    },

    async requestCheckpoint(jobId, condition) {
      return (await request(jobId, 'checkpoint', condition)) as Job;
    },

    pinCheckpoint: (checkpointId, pinned) =>
      changeCheckpoint(context, 'pin_checkpoint', { checkpointId, pinned }),

    deleteCheckpoint: (checkpointId) => changeCheckpoint(context, 'delete_checkpoint', { checkpointId }),

    async requestResize(jobId, ranks, condition) {
      return (await request(jobId, 'resize', { ...condition, ranks })) as Job;
    },

    async listCheckpoints(jobId, page = {}) {
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

    listProjectCheckpoints({ project, ...page }) {
      const load = (ids: string[]) =>
        Promise.all(ids.map(async (id) => (await findCheckpoint(id))?.checkpoint ?? null));
      return readPage(context, { indexes: [indexKey(context, project, 'checkpoints')], page, load });
    },

    findCheckpoint,
  };
}

/** Returns the position of a checkpoint in the list of its job, as `checkpoint_order` in core/commands/checkpoint.lua does. */
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
