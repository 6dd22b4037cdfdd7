import {
  type DayUsage,
  DEFAULT_PROJECT,
  JOB_STATES,
  type JobState,
  type ProjectQuota,
} from '../../contracts/index.js';
import { indexKey, projectsKey, redisCall, type StoreContext } from '../core/context.js';

/** Resources that a project uses now. */
interface ProjectUse {
  jobs: Record<JobState, number>;
  /** Sum of the ranks requested by jobs that are neither final nor paused. */
  ranks: number;
  dataset_bytes: number;
  model_bytes: number;
  checkpoint_bytes: number;
  /** Bytes reserved for incomplete uploads. */
  upload_bytes: number;
}

/** Total bytes that count as storage. */
export function storedBytes({
  dataset_bytes,
  model_bytes,
  checkpoint_bytes,
  upload_bytes,
}: ProjectUse): number {
  return dataset_bytes + model_bytes + checkpoint_bytes + upload_bytes;
}

const DAY_MS = 86_400_000;

/**
 * Quotas, current use and daily usage of projects. Daily usage is in Redis only; quotas are in the object store as
 * well.
 */
export type Projects = ReturnType<typeof projects>;

export function projects(context: StoreContext) {
  const { redis, commands } = context;
  const hash = (project: string, name: string) => redisCall(redis.hgetall(indexKey(context, project, name)));

  return {
    /** Returns the names of all projects that have or had records, sorted, including 'default'. */
    async listProjects(): Promise<string[]> {
      const names = await redisCall(redis.smembers(projectsKey(context)));
      return [DEFAULT_PROJECT, ...names].sort();
    },

    /** Returns the quota; null fields are unlimited. */
    async getQuota(project: string): Promise<ProjectQuota> {
      const { max_jobs, max_ranks, max_storage_bytes } = await hash(project, 'quota');
      return {
        max_jobs: limitOf(max_jobs),
        max_ranks: limitOf(max_ranks),
        max_storage_bytes: limitOf(max_storage_bytes),
      };
    },

    /** Sets the quota. Existing resources stay, even above the new quota. The project exists from then on. */
    async putQuota(project: string, quota: ProjectQuota): Promise<void> {
      const limits = Object.entries(quota).filter(([, max]) => max !== null);
      await commands.run('put_quota', { project, quota: Object.fromEntries(limits) });
    },

    async getUse(project: string): Promise<ProjectUse> {
      const [counts, use] = await Promise.all([
        Promise.all(JOB_STATES.map((state) => countJobs(context, project, state))),
        hash(project, 'used'),
      ]);
      return {
        jobs: Object.fromEntries(counts) as ProjectUse['jobs'],
        ranks: Number(use.ranks ?? 0),
        dataset_bytes: Number(use.dataset_bytes ?? 0),
        model_bytes: Number(use.model_bytes ?? 0),
        checkpoint_bytes: Number(use.checkpoint_bytes ?? 0),
        upload_bytes: Number(use.upload_bytes ?? 0),
      };
    },

    /** Returns one entry per day from `from` to `to` (`YYYY-MM-DD`); days are kept for 400 days. */
    getUsage(project: string, from: string, to: string): Promise<DayUsage[]> {
      const [first, last] = [Date.parse(from) / DAY_MS, Date.parse(to) / DAY_MS];
      const days = Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
      return Promise.all(days.map(async (day) => usageOf(day, await hash(project, `usage:${day}`))));
    },
  };
}

async function countJobs(
  context: StoreContext,
  project: string,
  state: JobState,
): Promise<[JobState, number]> {
  const index = indexKey(context, project, `jobs:state:${state}`);
  return [state, await redisCall(context.redis.zcard(index))];
}

function usageOf(day: number, fields: Record<string, string>): DayUsage {
  const number = (name: string) => Number(fields[name] ?? 0);
  return {
    date: new Date(day * DAY_MS).toISOString().slice(0, 10),
    jobs: number('jobs'),
    run_seconds: number('run_ms') / 1000,
    rank_seconds: number('rank_ms') / 1000,
    cost: number('cost'),
    tokens: number('tokens'),
  };
}

function limitOf(text: string | undefined): ProjectQuota[keyof ProjectQuota] {
  return text === undefined ? null : Number(text);
}
