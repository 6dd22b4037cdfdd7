import { type DayUsage, type ProjectUsage, ZerofleetError } from '../../../contracts/index.js';
import { storedBytes } from '../../../state/index.js';
import type { OperationHandler } from '../types.js';

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;
const MAX_DAYS = 366;

export const getUsage: OperationHandler<'getUsage'> = async (request): Promise<ProjectUsage> => {
  const { store } = request.server.services;
  const { project } = request.records;
  const { to = dayOf(Date.now()) } = request.query;
  const { from = dayOf(Date.parse(to) - (DEFAULT_DAYS - 1) * DAY_MS) } = request.query;
  const numDays = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1;
  if (numDays < 1 || numDays > MAX_DAYS)
    throw new ZerofleetError('invalid_parameter', `from ${from} to ${to} must be 1 to ${MAX_DAYS} days`);
  const [days, use, quota] = await Promise.all([
    store.getUsage(project, from, to),
    store.getUse(project),
    store.getQuota(project),
  ]);
  const { jobs, ranks, ...stored } = use;
  const totalBytes = storedBytes(use);
  const storage = { ...stored, total_bytes: totalBytes };
  return { project, from, to, total: sumOf(days), days, jobs, ranks, storage, quota };
};

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function sumOf(days: readonly DayUsage[]): ProjectUsage['total'] {
  const sum = (name: Exclude<keyof DayUsage, 'date'>) => days.reduce((total, day) => total + day[name], 0);
  return {
    jobs: sum('jobs'),
    run_seconds: sum('run_seconds'),
    rank_seconds: sum('rank_seconds'),
    cost: sum('cost'),
    tokens: sum('tokens'),
  };
}
