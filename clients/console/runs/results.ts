/** Results of runs, for their comparison. */
import { compareFigures, evaluationOf, isReward, VALIDATION } from '../../../contracts/evaluation-metrics.js';
import type { Job } from '../../../contracts/types.js';
import { type CurvePoint, evaluationCurve } from '../run/charts/curve.js';
import { judgedBy } from '../run/charts/marks.js';
import type { Difference } from './documents.js';

export interface Result {
  job: Job;
  /** Metric of the evaluation by which the run is compared. */
  metric: string;
  /** Best and last value of the evaluation; null without any. */
  best: number | null;
  final: number | null;
}

const ID = /^(job|ds|mdl|ckpt|wh|swp)_[0-9A-HJKMNP-TV-Z]{26}$/;
/** Storage of a run, which is named by its id. */
const PREFIX = /\b(jobs|datasets|models)\/\w+_[0-9A-HJKMNP-TV-Z]{26}/;

export function resultOf(job: Job, points: readonly Pick<CurvePoint, 'values'>[]): Result {
  const metric = judgedBy(job);
  const name = evaluationCurve(evaluationOf(metric) ?? VALIDATION, isReward(metric));
  const values = points.map((point) => point.values[name]).filter((value) => typeof value === 'number');
  const [best = null] = values.toSorted((a, b) => compareFigures(metric, a, b));
  return { job, metric, best, final: values.at(-1) ?? null };
}

/**
 * Returns the best of the figures of results; null without one. Figures of other metrics than that of the first result
 * do not count.
 */
export function bestOf(
  results: readonly Result[],
  figureOf: (result: Result) => number | null,
): number | null {
  const metric = results[0]?.metric ?? '';
  const values = results.filter((result) => result.metric === metric).map(figureOf);
  return values.toSorted((a, b) => compareFigures(metric, a, b))[0] ?? null;
}

/** Labels by which runs can be grouped: those that have at least two values. */
export function labelsOf(jobs: readonly Pick<Job, 'labels'>[]): string[] {
  const names = [...new Set(jobs.flatMap(({ labels }) => Object.keys(labels)))];
  return names.filter((name) => new Set(jobs.map(({ labels }) => labels[name])).size > 1).sort();
}

export interface Group {
  /** Value of the label; undefined for runs without it. */
  value: string | undefined;
  results: Result[];
  /** Means over the runs that have an evaluation. */
  best: number | null;
  final: number | null;
}

/** Groups by a label, in the order of their first runs. @param label empty for one group of all */
export function groupsOf(results: readonly Result[], label: string): Group[] {
  const groups = new Map<string | undefined, Result[]>();
  for (const result of results) {
    const value = label === '' ? '' : result.job.labels[label];
    groups.set(value, [...(groups.get(value) ?? []), result]);
  }
  return [...groups].map(([value, members]) => ({
    value,
    results: members,
    best: mean(members.map(({ best }) => best)),
    final: mean(members.map(({ final }) => final)),
  }));
}

function mean(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

/** True if a field differs only in names that the server gave: ids and storage prefixes. */
export function isIdentity({ values }: Pick<Difference, 'values'>): boolean {
  const texts = values.filter((value) => value !== undefined && value !== null);
  return texts.every((value) => typeof value === 'string' && (ID.test(value) || PREFIX.test(value)));
}

/** True if a field is a number, a word or a switch in every run that has it. */
export function isScalar({ values }: Pick<Difference, 'values'>): boolean {
  return values.every((value) => value === undefined || value === null || typeof value !== 'object');
}
