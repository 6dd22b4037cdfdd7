import type { Attempt, Generation, Page } from '../../contracts/index.js';
import { jobKey, nowText, redisCall, type StoreContext } from '../core/context.js';
import { limitFields } from '../core/limits.js';
import { pageLimit } from '../core/listing.js';
import type { PageRequest } from '../core/paging.js';
import type { DeletedCheckpoint, DeletedJob, JobChanges, JobUpdate } from './changes-port.js';
import { HOLD_MS } from './holds.js';
import { jobIndexes } from './job-list.js';
import { demandFields, gpuFields, jobOf, overridesField, type RecordReply } from './record.js';

export function jobChanges(context: StoreContext): JobChanges {
  const { commands, prefix, redis } = context;
  const jobs = `${prefix}:deleted-jobs`;
  const checkpoints = `${prefix}:deleted-checkpoints`;
  const entriesOf = async <T>(key: string) =>
    Object.entries(await redisCall(redis.hgetall(key))).map(([id, text]) => ({
      id,
      ...(JSON.parse(text) as T),
    }));
  return {
    async updateJob({ before, spec, requested_ranks, changed }: JobUpdate) {
      const { priority, ranks_min } = demandFields(spec);
      const reply = await commands.run('update_job', {
        job_id: before.id,
        if_versions: [before.state_version],
        spec: JSON.stringify(spec),
        fields: {
          ...{ priority, ranks_min, requested_ranks: String(requested_ranks) },
          ...gpuFields(spec),
          ...overridesField(spec),
          ...limitFields(spec),
          indexes: JSON.stringify(jobIndexes({ ...before, labels: spec.labels })),
        },
        changed,
        at: nowText(),
      });
      return jobOf(reply as RecordReply);
    },

    async retryJob(jobId, condition = {}) {
      const reply = await commands.run('retry_job', {
        job_id: jobId,
        hold_ms: HOLD_MS,
        at: nowText(),
        ...condition,
      });
      return jobOf(reply as RecordReply);
    },

    listAttempts: (jobId, page = {}) => listAttempts(context, jobId, page),

    async deleteJob(jobId, options) {
      await commands.run('delete_job', { job_id: jobId, ...options });
    },

    listDeletedJobs: () => entriesOf<Omit<DeletedJob, 'id'>>(jobs),

    async forgetDeletedJob(jobId) {
      await redisCall(redis.hdel(jobs, jobId));
    },

    listDeletedCheckpoints: () => entriesOf<Omit<DeletedCheckpoint, 'id'>>(checkpoints),

    async forgetDeletedCheckpoint(checkpointId) {
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
  const ended_at = raw.ended_at ?? null;
  // The end of an attempt is that of its ranks.
  const generations = (raw.generations ?? []).map((generation) => ({ ended_at, ...generation }));
  return {
    epoch,
    attempt,
    workers,
    generations,
    started_at,
    ended_at,
    outcome: raw.outcome ?? 'running',
    reason: raw.reason ?? null,
    root_cause: root_cause === undefined ? null : JSON.parse(root_cause),
  };
}
