/** Usage and quotas in figures. */
import { isFinal } from '../../../contracts/job-states.js';
import type { DayUsage, JobState, Project, ProjectUsage } from '../../../contracts/types.js';
import { bytes, cost, count, duration } from '../parts/format.js';

const DAY_MS = 86_400_000;

/** Days of the periods that are offered. */
export const PERIODS = [7, 30, 90, 365] as const;
const DEFAULT_PERIOD = 30;

/** Period of the address. */
export function periodOf(query: URLSearchParams): number {
  const days = Number(query.get('days'));
  return PERIODS.find((period) => period === days) ?? DEFAULT_PERIOD;
}

/** The first of some days that end today (UTC). @param now Unix time in milliseconds */
export const firstDay = (days: number, now: number) =>
  new Date(now - (days - 1) * DAY_MS).toISOString().slice(0, 10);

export interface Measure {
  name: Exclude<keyof DayUsage, 'date'>;
  label: string;
  text: (value: number) => string;
}

export const MEASURES: readonly Measure[] = [
  { name: 'cost', label: 'Cost', text: cost },
  { name: 'rank_seconds', label: 'Time of all ranks', text: duration },
  { name: 'run_seconds', label: 'Run time', text: duration },
  { name: 'tokens', label: 'Tokens', text: count },
  { name: 'jobs', label: 'Runs created', text: count },
];

/** Heights of bars in percent of the highest one. */
export function heightsOf(values: readonly number[]): number[] {
  const highest = Math.max(...values, 0);
  return values.map((value) => (highest === 0 ? 0 : (100 * value) / highest));
}

/** Days that have any use, newest first. */
export const usedDays = (days: readonly DayUsage[]) =>
  days.filter((day) => MEASURES.some(({ name }) => day[name] > 0)).reverse();

interface Share {
  label: string;
  used: number;
  /** Null without a limit. */
  limit: number | null;
  text: string;
}

/** Current use of a project, from its usage. */
export function projectOf({ jobs, ranks, storage, quota }: ProjectUsage): Pick<Project, 'used' | 'quota'> {
  const unfinished = Object.entries(jobs).filter(([state]) => !isFinal(state as JobState));
  const numJobs = unfinished.reduce((total, [, num]) => total + num, 0);
  return { used: { jobs: numJobs, ranks, storage_bytes: storage.total_bytes }, quota };
}

/** A project's use of each limit. */
export function sharesOf({ used, quota }: Pick<Project, 'used' | 'quota'>): Share[] {
  const share = (
    label: string,
    amount: number,
    limit: number | null,
    format: (value: number) => string,
  ): Share => ({
    label,
    used: amount,
    limit,
    text: `${format(amount)} ${limit === null ? '(no limit)' : `of ${format(limit)}`}`,
  });
  return [
    share('Unfinished runs', used.jobs, quota.max_jobs, count),
    share('Ranks', used.ranks, quota.max_ranks, count),
    share('Storage', used.storage_bytes, quota.max_storage_bytes, bytes),
  ];
}
