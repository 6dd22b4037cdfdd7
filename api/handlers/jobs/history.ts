import { Readable } from 'node:stream';
import type { Job, JobLog, JobMetric, Page, StreamEntry } from '../../../contracts/index.js';
import { type JobStore, metricsBetween, type StepRange } from '../../../state/index.js';
import { findJob } from '../../access/found.js';
import { choosePoints } from '../../jobs/metric-points.js';
import { METRIC_FORMATS } from '../../metric-files/formats.js';
import { sendMetrics } from '../../metric-files/send.js';
import type { OperationHandler, OperationRequest } from '../types.js';

/** Metrics per page by default. */
const METRICS_PER_PAGE = 100;
/** Metrics per read of the store. */
const METRICS_PER_READ = 1000;

/** Lines per read when a filter may drop some of them. */
const LOG_BATCH = 1000;

/** One page of events. One extra entry is read to detect a following page. */
export const listJobEvents: OperationHandler<'listJobEvents'> = async (request) => {
  const { after = null, limit = 100 } = request.query;
  const job = await findJob(request.records, request.params.job_id);
  const { store } = request.server.services;
  const entries = await store.readStream(job.id, after, limit + 1, ['event']);
  return pageOf(entries, limit);
};

/** A page of metrics, or a file of all of them. */
export const listJobMetrics: OperationHandler<'listJobMetrics'> = async (request, reply) => {
  const { store } = request.server.services;
  const { query } = request;
  const { format = 'json', limit } = query;
  const job = await findJob(request.records, request.params.job_id);
  const { max_points: maxPoints, names = ['loss'] } = query;
  const curve = (max: number) =>
    choosePoints(store, job.id, { names, maxPoints: max, steps: rangeOf(query) });
  const points = maxPoints === undefined ? null : await curve(maxPoints);
  if (format !== 'json') {
    const read = () => (points ? Readable.from(points) : metricsOf(store, job, query, limit));
    return sendMetrics(request, reply, job, METRIC_FORMATS[format], read);
  }
  if (points) return { data: points, next_cursor: null };
  const size = limit ?? METRICS_PER_PAGE;
  const found: JobMetric[] = [];
  for await (const metric of metricsOf(store, job, query, size + 1)) found.push(metric);
  return pageOf(found, size);
};

type MetricsQuery = OperationRequest<'listJobMetrics'>['query'];

const rangeOf = ({ from_step = 1, to_step = Number.POSITIVE_INFINITY }: MetricsQuery): StepRange => ({
  from: from_step,
  to: to_step,
});

/** The first metrics of the range after the position; all of them without `limit`. */
async function* metricsOf(
  store: JobStore,
  { id }: Job,
  query: MetricsQuery,
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<JobMetric> {
  const batch = Math.min(limit, METRICS_PER_READ);
  let left = limit;
  for await (const metric of metricsBetween(store, id, rangeOf(query), {
    after: query.after ?? null,
    batch,
  })) {
    yield metric;
    left -= 1;
    if (left === 0) return;
  }
}

/** Log lines of one rank; lines of other ranks are skipped. The number of lines per job is bounded. */
export const listJobLogs: OperationHandler<'listJobLogs'> = async (request): Promise<Page<JobLog>> => {
  const { after = null, limit = 100, rank } = request.query;
  const job = await findJob(request.records, request.params.job_id);
  const { store } = request.server.services;
  const batch = rank === undefined ? limit + 1 : LOG_BATCH;
  const found: JobLog[] = [];
  for (let last: string | null = after; found.length <= limit; ) {
    const entries = await store.readStream(job.id, last, batch, ['log']);
    found.push(...entries.filter(isLog).filter((line) => rank === undefined || line.rank === rank));
    last = entries.at(-1)?.position ?? last;
    if (entries.length < batch) break;
  }
  return pageOf(found, limit);
};

export const listJobCheckpoints: OperationHandler<'listJobCheckpoints'> = async (request) => {
  const { records: store } = request;
  const job = await findJob(store, request.params.job_id);
  return store.listCheckpoints(job.id, request.query);
};

export const listCheckpoints: OperationHandler<'listCheckpoints'> = ({ records, query }) =>
  records.listProjectCheckpoints(query);

function isLog(entry: StreamEntry): entry is JobLog {
  return entry.kind === 'log';
}

function pageOf<T extends StreamEntry>(entries: readonly T[], limit: number): Page<T> {
  const data = entries.slice(0, limit);
  return { data, next_cursor: entries.length > limit ? (data.at(-1)?.position ?? null) : null };
}
