import type { Page, StreamEntry } from '../../contracts/index.js';
import type { JobStorePort, StreamKind } from '../../platform/job-store/port.js';
import { findJob } from './jobs.js';
import type { OperationHandler } from './types.js';

interface StreamQuery {
  after?: number;
  limit?: number;
}

export const listJobEvents: OperationHandler<'listJobEvents'> = (request) =>
  readPage(request.server.services.store, request.params.job_id, 'event', request.query);

export const listJobMetrics: OperationHandler<'listJobMetrics'> = (request) =>
  readPage(request.server.services.store, request.params.job_id, 'metric', request.query);

export const listJobCheckpoints: OperationHandler<'listJobCheckpoints'> = async (request) => {
  const { store } = request.server.services;
  const job = await findJob(store, request.params.job_id);
  return store.listCheckpoints(job.id, request.query);
};

/** One page of one kind. An entry more than asked for is read: it tells whether another page follows. */
async function readPage(
  store: JobStorePort,
  jobId: string,
  kind: StreamKind,
  { after = 0, limit = 100 }: StreamQuery,
): Promise<Page<StreamEntry>> {
  const job = await findJob(store, jobId);
  const entries = await store.readStream(job.id, after, limit + 1, [kind]);
  const data = entries.slice(0, limit);
  return { data, next_cursor: entries.length > limit ? String(data.at(-1)?.seq) : null };
}
