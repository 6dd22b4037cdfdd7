import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';
import type { JobState, StreamEntry } from '../../contracts/types.js';
import { cancellable } from './cancellable.js';
import { pause } from './pause.js';
import { bodyOf, type Http } from './transport.js';

/** Delay before a broken stream is reopened, unless the server sends another; opening has its own retries. */
const REOPEN_MS = 200;

export interface FollowOptions {
  /** Only entries after the one with this `position`. */
  after?: string;
  /** Only entries of these kinds; all when absent. */
  kinds?: StreamEntry['kind'][];
  signal?: AbortSignal;
}

/**
 * Yields events, metrics and log lines of a job live, each once and in order, until the job has ended. A broken stream
 * resumes after the last entry. After a loss of Redis it restarts from the beginning of the recovered entries, and
 * `seq` counts from 1 again. The connection is closed when the consumer leaves: by `break`, by an error or by
 * `return()`, also during a pending `next()`.
 * @param isWanted selects the entries to yield
 * @returns the job's final state
 * @throws ApiError, ConnectionError when the stream cannot be opened (again)
 */
export function followJob<T extends StreamEntry>(
  http: Http,
  jobId: string,
  options: FollowOptions,
  isWanted: (entry: StreamEntry) => entry is T,
): AsyncGenerator<T, JobState> {
  return cancellable((signal) => entriesOf(http, jobId, { ...options, signal }, isWanted), options.signal);
}

async function* entriesOf<T extends StreamEntry>(
  http: Http,
  jobId: string,
  options: FollowOptions & { signal: AbortSignal },
  isWanted: (entry: StreamEntry) => entry is T,
): AsyncGenerator<T, JobState> {
  const { signal } = options;
  let { after = '' } = options;
  let reopenMs = REOPEN_MS;
  const onRetry = (retry: number) => {
    reopenMs = retry;
  };
  for (;;) {
    const messages = await open(http, jobId, { ...options, after, onRetry });
    try {
      for (;;) {
        const message = await next(messages, signal);
        if (message === null) break;
        if (message.event === 'end') return (JSON.parse(message.data) as { state: JobState }).state;
        after = message.id ?? after;
        // The entries were lost with the server's Redis; the recovered ones follow from their beginning, and the id is
        // empty.
        if (message.event === 'reset') continue;
        const entry = JSON.parse(message.data) as StreamEntry;
        if (isWanted(entry)) yield entry;
      }
    } finally {
      // Rejects if the connection broke; nothing has to be closed then.
      await messages.cancel().catch(() => undefined);
    }
    await pause(reopenMs, signal);
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
