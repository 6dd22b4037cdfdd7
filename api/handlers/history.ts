import type { Page, StreamEntry } from '../../contracts/index.js';
import type { StreamKind } from '../../platform/job-store/port.js';
import { findJob } from './jobs.js';
import type { OperationHandler, OperationRequest } from './types.js';

export const listJobEvents: OperationHandler<'listJobEvents'> = (request) => readPage(request, 'event');

export const listJobMetrics: OperationHandler<'listJobMetrics'> = (request) => readPage(request, 'metric');

export const listJobCheckpoints: OperationHandler<'listJobCheckpoints'> = async (request) => {
  const { records: store } = request;
  const job = await findJob(store, request.params.job_id);
  return store.listCheckpoints(job.id, request.query);
};

/** One page of one kind. An entry more than asked for is read: it tells whether another page follows. */
async function readPage(
  { records, server, params, query }: OperationRequest<'listJobEvents' | 'listJobMetrics'>,
  kind: StreamKind,
): Promise<Page<StreamEntry>> {
  const { after = 0, limit = 100 } = query;
  const job = await findJob(records, params.job_id);
  const entries = await server.services.store.readStream(job.id, after, limit + 1, [kind]);
  const data = entries.slice(0, limit);
  return { data, next_cursor: entries.length > limit ? String(data.at(-1)?.seq) : null };
}
