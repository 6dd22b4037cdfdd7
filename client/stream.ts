import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';
import type { JobState, StreamEntry } from '../contracts/types.js';
import { cancellable } from './cancellable.js';
import { pause } from './pause.js';
import { bodyOf, type Http } from './transport.js';

/** Pause before a stream that broke is opened again, unless the server says another; opening has retries of its own. */
const REOPEN_MS = 200;

export interface FollowOptions {
  /** Only entries after the one with this `position`. */
  after?: string;
  /** Only entries of these kinds; all when absent. */
  kinds?: StreamEntry['kind'][];
  signal?: AbortSignal;
}

/**
 * Events, metrics and log lines of a job as they happen, each once and in order, until the job has ended. A stream that breaks is
 * opened again behind the last entry. After a loss of Redis, what is known then follows from its beginning, and `seq` counts from 1 again. The connection is closed when the consumer leaves: by `break`, by an error or by `return()`, also
 * while a `next()` is pending.
 * @param wants selects the entries to yield
 * @returns the state that the job has ended in
 * @throws ApiError, ConnectionError when the stream can't be opened (again)
 */
export function followJob<T extends StreamEntry>(
  http: Http,
  jobId: string,
  options: FollowOptions,
  wants: (entry: StreamEntry) => entry is T,
): AsyncGenerator<T, JobState> {
  return cancellable((signal) => entriesOf(http, jobId, { ...options, signal }, wants), options.signal);
}

async function* entriesOf<T extends StreamEntry>(
  http: Http,
  jobId: string,
  options: FollowOptions & { signal: AbortSignal },
  wants: (entry: StreamEntry) => entry is T,
): AsyncGenerator<T, JobState> {
  const { signal } = options;
  let { after = '' } = options;
  let reopen_ms = REOPEN_MS;
  const onRetry = (retry: number) => {
    reopen_ms = retry;
  };
  for (;;) {
    const messages = await open(http, jobId, { ...options, after, onRetry });
    try {
      for (;;) {
        const message = await next(messages, signal);
        if (message === null) break;
        if (message.event === 'end') return (JSON.parse(message.data) as { state: JobState }).state;
        after = message.id ?? after;
        // What happened was lost with the server's Redis; what it knows now follows from its beginning, and the id is empty.
        if (message.event === 'reset') continue;
        const entry = JSON.parse(message.data) as StreamEntry;
        if (wants(entry)) yield entry;
      }
    } finally {
      // Rejects when the connection broke, which leaves nothing to close.
      await messages.cancel().catch(() => undefined);
    }
    await pause(reopen_ms, signal);
  }
}

type Messages = ReadableStreamDefaultReader<EventSourceMessage>;

async function open(
  http: Http,
  jobId: string,
  {
    after,
    kinds,
    signal,
    onRetry,
  }: Omit<FollowOptions, 'after'> & { after: string; signal: AbortSignal; onRetry(ms: number): void },
): Promise<Messages> {
  const body = await bodyOf(
    `stream of ${jobId}`,
    http.GET('/v1/jobs/{job_id}/stream', {
      params: {
        path: { job_id: jobId },
        ...(kinds && { query: { kinds } }),
        ...(after !== '' && { header: { 'Last-Event-ID': after } }),
      },
      headers: { accept: 'text/event-stream' },
      parseAs: 'stream',
      signal,
    }),
  );
  if (body === null) throw new Error('a stream without a body');
  const parser = new EventSourceParserStream({ onRetry });
  return body.pipeThrough(new TextDecoderStream()).pipeThrough(parser).getReader();
}

/** The next message; null when the connection ended or broke. */
async function next(messages: Messages, signal: AbortSignal): Promise<EventSourceMessage | null> {
  try {
    const { value, done } = await messages.read();
    return done ? null : value;
  } catch {
    signal.throwIfAborted();
    return null;
  }
}
