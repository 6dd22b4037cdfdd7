import type { JobLog, JobMetric, Page, StreamEntry } from '../../../contracts/index.js';
import { findJob } from '../../access/found.js';
import { choosePoints, metricsBetween } from '../../jobs/metric-points.js';
import type { OperationHandler } from '../types.js';

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

export const listJobMetrics: OperationHandler<'listJobMetrics'> = async (
  request,
): Promise<Page<JobMetric>> => {
  const { store } = request.server.services;
  const {
    after = null,
    limit = 100,
    from_step: from = 1,
    to_step,
    max_points,
    names = ['loss'],
  } = request.query;
  const job = await findJob(request.records, request.params.job_id);
  const range = { from, to: to_step ?? Number.POSITIVE_INFINITY };
  if (max_points !== undefined) {
    const lastStep = Math.max(from, Math.min(range.to, job.progress.step));
    const metrics = metricsBetween(store, job.id, range);
    return {
      data: await choosePoints(metrics, { names, maxPoints: max_points, from, lastStep }),
      next_cursor: null,
    };
  }
  const found: JobMetric[] = [];
  for await (const metric of metricsBetween(store, job.id, range, { after, batch: limit + 1 })) {
    found.push(metric);
    if (found.length > limit) break;
  }
  return pageOf(found, limit);
};

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
