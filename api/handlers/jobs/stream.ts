import { findJob } from '../../access/found.js';
import { onClosed } from '../../http/long-request.js';
import { SSE_HEARTBEAT, sendEvents, sseMessage, sseRetry } from '../../http/sse.js';
import { type Followed, followJob } from '../../jobs/follow.js';
import type { OperationHandler } from '../types.js';

/** Client's reconnect delay after a broken connection. */
const RECONNECT_MS = 1000;
/** Reconnect delay at a shutdown: another server is available, but clients must not reconnect all at once. */
const MOVE_MS = { least: 50, most: 500 };

/** Streams the entries of a job as server-sent events. The id of a message is the entry's position. */
export const streamJob: OperationHandler<'streamJob'> = async (request, reply) => {
  const { store, limits, keyWatch, closing } = request.server.services;
  const job = await findJob(request.records, request.params.job_id);
  const gone = new AbortController();
  onClosed(reply, () => gone.abort());
  const last = request.headers['last-event-id'];

  const followed = followJob(store, job.id, {
    after: last === undefined ? null : String(last),
    kinds: request.query.kinds,
    quietMs: limits.heartbeat_ms,
    signal: AbortSignal.any([gone.signal, closing, keyWatch.watch(request, gone.signal)]),
  });
  return sendEvents(reply, toMessages(followed, closing));
};

async function* toMessages(followed: AsyncIterable<Followed>, closing: AbortSignal): AsyncGenerator<string> {
  // Written immediately, so that the headers are sent before the first entry.
  yield sseRetry(RECONNECT_MS);
  for await (const item of followed) yield toMessage(item);
  if (closing.aborted)
    yield sseRetry(Math.round(MOVE_MS.least + Math.random() * (MOVE_MS.most - MOVE_MS.least)));
}

function toMessage(item: Followed): string {
  switch (item.kind) {
    case 'entries':
      return item.entries
        .map((entry) => sseMessage({ id: entry.position, event: entry.kind, data: entry }))
        .join('');
    case 'reset':
      // An empty id: a client whose connection breaks now restarts from the beginning.
      return sseMessage({ id: '', event: 'reset', data: {} });
    case 'quiet':
      return SSE_HEARTBEAT;
    case 'end':
      return sseMessage({ event: 'end', data: { state: item.state } });
  }
}
