import {
  type DayUsage,
  DEFAULT_PROJECT,
  JOB_STATES,
  type JobState,
  type ProjectQuota,
} from '../../contracts/index.js';
import { indexKey, projectsKey, redisCall, type StoreContext } from '../core/context.js';
import type { Projects, ProjectUse } from './projects-port.js';

const DAY_MS = 86_400_000;

export function projects(context: StoreContext): Projects {
  const { redis, commands } = context;
  const hash = (project: string, name: string) => redisCall(redis.hgetall(indexKey(context, project, name)));

  return {
    async listProjects() {
      const names = await redisCall(redis.smembers(projectsKey(context)));
      return [DEFAULT_PROJECT, ...names].sort();
    },

    async getQuota(project) {
      const { max_jobs, max_ranks, max_storage_bytes } = await hash(project, 'quota');
      return {
        max_jobs: limitOf(max_jobs),
        max_ranks: limitOf(max_ranks),
        max_storage_bytes: limitOf(max_storage_bytes),
      };
    },

    async putQuota(project, quota) {
      const limits = Object.entries(quota).filter(([, max]) => max !== null);
      await commands.run('put_quota', { project, quota: Object.fromEntries(limits) });
    },

    async getUse(project) {
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

    getUsage(project, from, to) {
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
