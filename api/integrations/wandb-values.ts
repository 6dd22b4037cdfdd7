/** Jobs in the terms of W&B: config, tags, lines of the history, and the summary. */
import type { FinalJobState, Job, JobMetric } from '../../contracts/index.js';
import { valuesOf } from '../../formats/metric-files/values.js';
import { parsedJson } from '../../platform/parsed-json.js';
import { sectionsOf } from './values.js';

/** Longer tags are refused by W&B. */
const MAX_TAG_LENGTH = 64;

/** W&B's client has 255 for a run that was interrupted. */
export const EXIT_CODES: Readonly<Record<FinalJobState, number>> = {
  succeeded: 0,
  failed: 1,
  cancelled: 255,
};

/** Numbers by name; null for one that is not finite. */
type Numbers = Readonly<Record<string, number | null>>;

/** Id of a run. Only further integrations of a job have their index in it. */
export function runIdOf(jobId: string, index: number): string {
  return index === 0 ? jobId : `${jobId}-${index}`;
}

/** The sections of the document, as JSON. W&B's client continues only a run that has the entry `t` in `_wandb`. */
export function configOf({ id, spec }: Pick<Job, 'id' | 'spec'>): string {
  const sections = {
    ...sectionsOf(spec),
    zerofleet: { job_id: id, project: spec.project },
    _wandb: { t: {} },
  };
  return JSON.stringify(Object.fromEntries(Object.entries(sections).map(([key, value]) => [key, { value }])));
}

/** The labels of the document that fit. */
export function tagsOf({ labels }: Pick<Job['spec'], 'labels'>): string[] {
  const tags = Object.entries(labels).map(([name, value]) => (value === '' ? name : `${name}=${value}`));
  return tags.filter((tag) => tag.length <= MAX_TAG_LENGTH);
}

/** One row of the history. @param start Unix time in ms from which `_runtime` counts */
export function rowOf(item: JobMetric, start: number): Numbers {
  const at = Date.parse(item.at);
  return {
    ...Object.fromEntries(valuesOf(item)),
    _step: item.step,
    _timestamp: at / 1000,
    _runtime: (at - start) / 1000,
  };
}

/** Divides rows into requests of at most `limit` values, in order. A row that has more is alone. */
export function batchesOf(rows: readonly Numbers[], limit: number): Numbers[][] {
  const batches: Numbers[][] = [];
  let room = 0;
  for (const row of rows) {
    const size = Object.keys(row).length;
    const last = batches.at(-1);
    if (last && size <= room) last.push(row);
    else batches.push([row]);
    room = (last && size <= room ? room : limit) - size;
  }
  return batches;
}

/** The newest values of a run. */
export function summaryLine(newest: Numbers, outcome: Record<string, string> = {}): string {
  return lineOf({ ...newest, ...outcome, _wandb: { runtime: Math.floor(newest._runtime ?? 0) } });
}

/** JSON with `NaN` for a value that is not finite, as W&B's client writes it. */
export function lineOf(fields: Readonly<Record<string, unknown>>): string {
  const entries = Object.entries(fields).map(
    ([key, value]) => `${JSON.stringify(key)}:${value === null ? 'NaN' : JSON.stringify(value)}`,
  );
  return `{${entries.join(',')}}`;
}

/** Step of the last line of `historyTail`; 0 without one. */
export function newestStepOf(historyTail: string | null): number {
  const lines = parsedJson(historyTail ?? '[]');
  const last: unknown = Array.isArray(lines) ? lines.at(-1) : null;
  // The line may have `NaN`, which no parser of JSON reads.
  return Number(/"_step":\s*(\d{1,15})(?!\d)/.exec(String(last))?.[1] ?? 0);
}

/** Numbers of a summary that are kept in the job's state: more than a job has. */
const SUMMARY_NUMBERS = 1000;
const NAME_LENGTH = 256;

/** The first numbers of a summary, whose names are not too long. */
export function numbersOf(summaryMetrics: string | null): Numbers {
  const summary = parsedJson((summaryMetrics ?? '{}').replaceAll(/:\s*-?(NaN|Infinity)/g, ':null'));
  const entries = Object.entries(summary ?? {}).filter(
    ([name, value]) => name.length <= NAME_LENGTH && (value === null || typeof value === 'number'),
  );
  return Object.fromEntries(entries.slice(0, SUMMARY_NUMBERS));
}
