import { Readable } from 'node:stream';
import { onClosed } from '../../http/long-request.js';
import { sseComment, sseMessage, sseRetry } from '../../http/sse.js';
import { findJob } from '../../jobs/find-job.js';
import { type Followed, followJob } from '../../jobs/follow.js';
import type { OperationHandler } from '../types.js';

/** How long a client should wait before it connects again after a broken connection. */
const RECONNECT_MS = 1000;
/** The same when this server shuts down: another one is there, but its clients shouldn't come to it all at once. */
const MOVE_MS = { least: 50, most: 500 };

/** Streams what happens to a job as server-sent events. The id of a message is the entry's position. */
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
  reply.header('cache-control', 'no-store').header('x-accel-buffering', 'no').type('text/event-stream');
  // The stream asks for the next message only when the socket has taken the one before: a slow client slows the reading
  // of its own stream, and nothing piles up in memory.
  return reply.send(
    Readable.from(toMessages(followed, closing), { objectMode: false, highWaterMark: 16 * 1024 }),
  );
};

async function* toMessages(followed: AsyncIterable<Followed>, closing: AbortSignal): AsyncGenerator<string> {
  // Written at once, so that the headers go out before anything has happened.
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
      // An empty id: a client whose connection breaks now begins anew when it connects again.
      return sseMessage({ id: '', event: 'reset', data: {} });
    case 'quiet':
      return sseComment('heartbeat');
    case 'end':
      return sseMessage({ event: 'end', data: { state: item.state } });
  }
}
