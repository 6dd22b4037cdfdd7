/** Jobs in the terms of MLflow: params, metrics, tags, and batches of metrics. */
import type { FinalJobState, Job, JobMetric, ResolvedJobSpec } from '../../contracts/index.js';
import { valuesOf } from '../../formats/metric-files/values.js';
import { MAX_PARAM_LENGTH, type MlflowMetric, type MlflowStatus, type MlflowText } from './mlflow-client.js';
import { sectionsOf } from './values.js';

/** Tag of the newest step whose metrics are in the run. */
export const STEP_TAG = 'zerofleet.step';

/** Tag of the newest step with values that are not finite, and their names. */
export const NON_FINITE_TAG = 'zerofleet.non_finite';

const STATUS: Record<FinalJobState, MlflowStatus> = {
  succeeded: 'FINISHED',
  failed: 'FAILED',
  cancelled: 'KILLED',
};

export function statusOf(state: FinalJobState): MlflowStatus {
  return STATUS[state];
}

/** Tag that one run of an experiment has: the integration of the job. */
export function identityOf(jobId: string, index: number): MlflowText {
  return { key: 'zerofleet.integration', value: `${jobId}/${index}` };
}

export function tagsOf(job: Pick<Job, 'id' | 'spec'>, index: number): MlflowText[] {
  return [
    identityOf(job.id, index),
    { key: 'zerofleet.job_id', value: job.id },
    { key: 'zerofleet.project', value: job.spec.project },
  ];
}

/** The fields of the document as `train.optimizer.lr`. Lists are JSON. */
export function paramsOf(spec: ResolvedJobSpec): MlflowText[] {
  return flattened('', sectionsOf(spec)).map(({ key, value }) => ({ key, value: cut(value) }));
}

function flattened(prefix: string, value: object): MlflowText[] {
  return Object.entries(value).flatMap(([name, field]): MlflowText[] => {
    const key = prefix + name;
    if (isObject(field)) return flattened(`${key}.`, field);
    // Some versions of MLflow refuse an empty value.
    if (field === undefined || field === '') return [];
    return [{ key, value: typeof field === 'string' ? field : JSON.stringify(field) }];
  });
}

/** Cuts off the end of a long value of a param or a tag, not inside of a character. */
function cut(value: string): string {
  return value.slice(0, MAX_PARAM_LENGTH).replace(/[\ud800-\udbff]$/, '');
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Metrics of one request. */
interface MetricBatch {
  metrics: MlflowMetric[];
  /** Newest step all of whose metrics are in this batch or in one before it. */
  step: number | null;
  /** The newest values that were left out, for the tag; null without any. */
  nonFinite: string | null;
}

/**
 * Divides metrics into batches of at most `limit`, in order. A step is in one batch, unless it alone has too many
 * values. Values that are not finite are left out.
 */
export function batchesOf(items: readonly JobMetric[], limit: number): MetricBatch[] {
  const batches: MetricBatch[] = [];
  for (const item of items) {
    const { metrics, nonFinite } = metricsOf(item);
    const last = batches.at(-1);
    if (last && last.metrics.length + metrics.length <= limit) {
      last.metrics.push(...metrics);
      last.step = item.step;
      last.nonFinite = nonFinite ?? last.nonFinite;
      continue;
    }
    for (let at = 0; at === 0 || at < metrics.length; at += limit) {
      const isLast = at + limit >= metrics.length;
      const step = isLast ? item.step : null;
      batches.push({ metrics: metrics.slice(at, at + limit), step, nonFinite: isLast ? nonFinite : null });
    }
  }
  return batches;
}

function metricsOf(item: JobMetric): Pick<MetricBatch, 'metrics' | 'nonFinite'> {
  const { step, at } = item;
  const timestamp = Date.parse(at);
  const metrics: MlflowMetric[] = [];
  const omitted: string[] = [];
  for (const [name, value] of valuesOf(item)) {
    const key = keyOf(name);
    if (value === null) omitted.push(key);
    else metrics.push({ key, value, timestamp, step });
  }
  return { metrics, nonFinite: omitted.length === 0 ? null : cut(`step ${step}: ${omitted.join(', ')}`) };
}

/** In a store of files `eval_loss` cannot be both a file and a folder. */
function keyOf(name: string): string {
  return name.replace(/^(eval_\w+)\//, '$1.');
}
