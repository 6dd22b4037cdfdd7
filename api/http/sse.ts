/**
 * Server-sent events, as the HTML standard defines them: https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';

interface SseMessage {
  /** Value that a client returns as `Last-Event-ID`; an empty string resets it, absence keeps the previous one. */
  id?: string;
  event: string;
  data: unknown;
}

/** One message. JSON has no raw line breaks, so one `data` line holds it. */
export function sseMessage({ id, event, data }: SseMessage): string {
  const idLine = id === undefined ? '' : `id: ${id}\n`;
  return `${idLine}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** A comment line, which clients ignore; keeps the connection alive. */
export const SSE_HEARTBEAT = ': heartbeat\n\n';

/**
 * Yields messages, and a heartbeat whenever none came for some time. It begins with one, so that the headers are sent
 * at once. The consumer's `return()` waits for the next message or heartbeat: a client that leaves must end the source
 * of the messages.
 */
export async function* withHeartbeats(
  messages: AsyncIterator<string>,
  quietMs: number,
): AsyncGenerator<string> {
  try {
    yield SSE_HEARTBEAT;
    for (let next = messages.next(); ; ) {
      const result = await within(quietMs, next);
      if (result === null) yield SSE_HEARTBEAT;
      else if (result.done) return;
      else {
        yield result.value;
        next = messages.next();
      }
    }
  } finally {
    await messages.return?.();
  }
}

/** Returns null if the result is not there in time. */
export async function within<T>(ms: number, result: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  return Promise.race([result, late]).finally(() => clearTimeout(timer));
}

/** Sends messages as an answer. */
export function sendEvents(reply: FastifyReply, messages: AsyncIterable<string>): FastifyReply {
  reply.header('cache-control', 'no-store').header('x-accel-buffering', 'no').type('text/event-stream');
  return sendTexts(reply, messages);
}

/**
 * Sends texts as an answer. The next text is requested only when the socket has taken the previous one: a slow client
 * slows the reading of its own answer, and memory stays bounded.
 */
export function sendTexts(reply: FastifyReply, texts: AsyncIterable<string>): FastifyReply {
  return reply.send(Readable.from(texts, { objectMode: false, highWaterMark: 16 * 1024 }));
}

/** Client's reconnect delay. */
export function sseRetry(milliseconds: number): string {
  return `retry: ${milliseconds}\n\n`;
}
