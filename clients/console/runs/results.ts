/** Results of runs, for their comparison. */
import type { Job } from '../../../contracts/types.js';
import type { CurvePoint } from '../run/charts/curve.js';
import type { Difference } from './documents.js';

export interface Result {
  job: Job;
  /** Lowest and last value of the evaluation; null without any. */
  best: number | null;
  final: number | null;
}

const EVALUATION = 'eval ';
const VALIDATION = `${EVALUATION}validation`;
const ID = /^(job|ds|mdl|ckpt|wh|swp)_[0-9A-HJKMNP-TV-Z]{26}$/;
/** Storage of a run, which is named by its id. */
const PREFIX = /\b(jobs|datasets|models)\/\w+_[0-9A-HJKMNP-TV-Z]{26}/;

/** Compares by the evaluation of early stopping, otherwise by the first one. */
export function resultOf(job: Job, points: readonly Pick<CurvePoint, 'values'>[]): Result {
  const name = evaluationOf(job, points);
  const values = points.map((point) => point.values[name]).filter((value) => typeof value === 'number');
  return { job, best: values.length === 0 ? null : Math.min(...values), final: values.at(-1) ?? null };
}

function evaluationOf({ spec }: Job, points: readonly Pick<CurvePoint, 'values'>[]): string {
  const { metric } = spec.train.early_stopping ?? {};
  if (metric?.includes('/')) return `${EVALUATION}${metric.slice(metric.indexOf('/') + 1)}`;
  const names = points.flatMap(({ values }) => Object.keys(values));
  const first = names.find((name) => name.startsWith(EVALUATION));
  return metric !== undefined || names.includes(VALIDATION) ? VALIDATION : (first ?? VALIDATION);
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
